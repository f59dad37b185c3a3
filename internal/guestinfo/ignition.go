// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Files that Ignition writes before the first boot continues. They replace the metadata, which Ignition, unlike
// cloud-init, does not read.
const (
	hostnameFile = "/etc/hostname"
	// environmentFile contains the metadata as shell variables.
	environmentFile = "/etc/vcd/metadata.env"
	networkFolder   = "/etc/systemd/network/"
)

// Keys from which systemd units of CAPVCD's users read the name of the VM and a script that configures the network.
const (
	keyCAPVCDName    = "guestinfo.ignition.vmname"
	keyCAPVCDNetwork = "guestinfo.ignition.network"
)

// capvcdNetwork is a no-op script, because the network units already exist when it runs.
const capvcdNetwork = "#!/bin/sh"

// ignitionVersion matches the versions of Ignition's specification that support the required features.
var ignitionVersion = regexp.MustCompile(`^[23]\.[0-9]{1,3}\.[0-9]{1,3}(-experimental)?$`)

// ignitionConfig is a configuration that contains files and includes another configuration. Versions 2 of the
// specification call this append, and place files on named file systems; versions 3 call it merge.
type ignitionConfig struct {
	Ignition ignition        `json:"ignition"`
	Storage  ignitionStorage `json:"storage"`
}

type ignition struct {
	Version string         `json:"version"`
	Config  ignitionOthers `json:"config"`
}

type ignitionOthers struct {
	Append []ignitionSource `json:"append,omitempty"`
	Merge  []ignitionSource `json:"merge,omitempty"`
}

type ignitionStorage struct {
	Files []ignitionFile `json:"files"`
}

type ignitionSource struct {
	Source string `json:"source"`
}

type ignitionFile struct {
	Filesystem string         `json:"filesystem,omitempty"`
	Path       string         `json:"path"`
	Overwrite  *bool          `json:"overwrite,omitempty"`
	Mode       int            `json:"mode"`
	Contents   ignitionSource `json:"contents"`
}

// renderIgnition returns a configuration that writes the files of [ignitionFiles] and includes the unchanged bootstrap
// data. It has the same specification version as the bootstrap data, so a guest that supports one supports the other.
// Where both set the same item, the bootstrap data wins.
func renderIgnition(in Input) ([]byte, error) {
	version, err := versionOf(in.BootstrapData)
	if err != nil {
		return nil, err
	}
	config := ignitionConfig{Ignition: ignition{Version: version}}
	bootstrapData := []ignitionSource{{Source: dataURL(string(in.BootstrapData))}}
	isVersion2 := strings.HasPrefix(version, "2.")
	if isVersion2 {
		config.Ignition.Config.Append = bootstrapData
	} else {
		config.Ignition.Config.Merge = bootstrapData
	}
	for _, f := range ignitionFiles(in) {
		file := ignitionFile{
			Path:     f.path,
			Mode:     0o644,
			Contents: ignitionSource{Source: dataURL(f.content)},
		}
		if isVersion2 {
			file.Filesystem = "root" // Files on it are overwritten by default.
		} else {
			file.Overwrite = new(true)
		}
		config.Storage.Files = append(config.Storage.Files, file)
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the Ignition configuration: %w", err)
	}
	return data, nil
}

// versionOf returns the specification version of an Ignition configuration.
func versionOf(data []byte) (string, error) {
	var config struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return "", errors.New("bootstrap data of format ignition is not JSON: transpile Butane and Container Linux Configs first")
	}
	if !ignitionVersion.MatchString(config.Ignition.Version) {
		return "", errors.New("bootstrap data of format ignition has no ignition.version 2.x.y or 3.x.y")
	}
	return config.Ignition.Version, nil
}

// dataURL returns a data URL with text. It does not use base64, because percent-encoded text compresses better.
func dataURL(text string) string { return "data:," + url.PathEscape(text) }

type guestFile struct {
	path    string
	content string
}

// ignitionFiles returns the files that configure the guest as the metadata does for cloud-init.
func ignitionFiles(in Input) []guestFile {
	files := []guestFile{
		{hostnameFile, in.Hostname + "\n"},
		{environmentFile, environment(in)},
	}
	for i, nic := range in.NICs {
		unit := fmt.Sprintf("%s20-vcd-nic%d", networkFolder, i)
		if nic.Name != "" {
			files = append(files, guestFile{unit + ".link", linkUnit(nic)})
		}
		files = append(files, guestFile{unit + ".network", networkUnit(nic)})
	}
	return files
}

// environment returns the metadata as shell variables, with the names that cloud-init templates use.
func environment(in Input) string {
	var text strings.Builder
	for _, variable := range []struct {
		name  string
		value string
	}{
		{"INSTANCE_ID", in.InstanceID},
		{"LOCAL_HOSTNAME", in.Hostname},
		{"PROVIDER_ID", in.ProviderID},
		{"TOPOLOGY_REGION", in.Region},
		{"TOPOLOGY_ZONE", in.Zone},
	} {
		value := strings.ReplaceAll(variable.value, "'", `'\''`)
		fmt.Fprintf(&text, "%s='%s'\n", variable.name, value)
	}
	return text.String()
}
