// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// maxIgnitionDepth is the maximum depth of configurations that refer to others.
const maxIgnitionDepth = 8

// deletedIgnition is the value that Ignition leaves in guestinfo after reading its configuration: an empty object in
// base64.
const deletedIgnition = "e30K"

// ignitionConfig is the part of an Ignition configuration that this guest supports. Specification 2 names the file
// system of a file and calls merging append; specification 3 does not. The rest is the same.
type ignitionConfig struct {
	Ignition struct {
		Version string `json:"version"`
		Config  struct {
			Append  []ignitionSource `json:"append"`
			Merge   []ignitionSource `json:"merge"`
			Replace ignitionSource   `json:"replace"`
		} `json:"config"`
	} `json:"ignition"`
	Networkd struct {
		Units []ignitionUnit `json:"units"`
	} `json:"networkd"`
	Passwd struct {
		Users []struct {
			Name string `json:"name"`
		} `json:"users"`
	} `json:"passwd"`
	Storage struct {
		Files []ignitionFile `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []ignitionUnit `json:"units"`
	} `json:"systemd"`
}

type ignitionSource struct {
	Source      string `json:"source"`
	Compression string `json:"compression"`
}

type ignitionFile struct {
	Path     string         `json:"path"`
	Mode     int            `json:"mode"`
	Contents ignitionSource `json:"contents"`
}

type ignitionUnit struct {
	Name     string `json:"name"`
	Enabled  *bool  `json:"enabled"`
	Contents string `json:"contents"`
}

// readIgnition returns the identity of a guest that Ignition sets up on its first boot. Ignition reads nothing from
// the metadata: the guest's name and network are in files. A later boot of a real guest finds the files on the disk.
// Here it finds the metadata, which must match them.
func readIgnition(text string, meta metadata, nics []NIC, m Machine) (Identity, error) {
	u, err := parseIgnition(text)
	if err != nil {
		return Identity{}, fmt.Errorf("guestinfo.%s: %w", ignitionKey, err)
	}
	id := Identity{
		InstanceID: strings.ToLower(m.UUID),
		Hostname:   m.Hostname,
		ProviderID: meta.text("provider_id"),
		Metadata:   meta.values,
		Userdata:   u,
		IsIgnition: true,
	}
	if instance := meta.text("instance-id"); instance != "" {
		id.InstanceID = instance
	}
	if f, ok := u.File("/etc/hostname"); ok {
		id.Hostname = strings.TrimSpace(f.Content)
	}
	if id.Hostname == "" {
		id.Hostname = "localhost"
	}
	if !validHostname(id.Hostname) {
		return Identity{}, fmt.Errorf("/etc/hostname: %q is not a host name", id.Hostname)
	}
	net, err := networkdNetwork(u, nics)
	if err != nil {
		return Identity{}, err
	}
	id.Addresses = net.addresses
	id.Primary = net.primary
	return id, nil
}

func parseIgnition(text string) (*Userdata, error) {
	run := ignitionRun{userdata: &Userdata{Format: "ignition"}}
	if err := run.apply(text, 0); err != nil {
		return nil, err
	}
	for _, unit := range run.units {
		if unit.Enabled == nil || *unit.Enabled {
			run.userdata.Commands = append(run.userdata.Commands, run.userdata.unitCommands(unit.Contents)...)
		}
	}
	return run.userdata, nil
}

// An ignitionRun collects the results of configurations that refer to each other.
type ignitionRun struct {
	userdata *Userdata
	units    []ignitionUnit
}

// apply applies a configuration and then the configurations that it refers to. Their files and units override those
// with the same path or name.
func (r *ignitionRun) apply(text string, depth int) error {
	var config ignitionConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return errors.New("not an ignition configuration in JSON")
	}
	if v := config.Ignition.Version; !strings.HasPrefix(v, "2.") && !strings.HasPrefix(v, "3.") {
		return fmt.Errorf("ignition.version %q is neither 2.x nor 3.x", v)
	}
	if depth == maxIgnitionDepth {
		return errors.New("configurations are nested too deeply")
	}
	if replaced := config.Ignition.Config.Replace; replaced.Source != "" {
		return r.applyOther(replaced, depth)
	}
	if err := r.applyOwn(config); err != nil {
		return err
	}
	merged := config.Ignition.Config.Merge
	if strings.HasPrefix(config.Ignition.Version, "2.") {
		merged = config.Ignition.Config.Append
	}
	for _, other := range merged {
		if err := r.applyOther(other, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *ignitionRun) applyOther(other ignitionSource, depth int) error {
	text, err := decodeDataURL(other)
	if err != nil {
		return fmt.Errorf("ignition.config: %w", err)
	}
	return r.apply(text, depth+1)
}

func (r *ignitionRun) applyOwn(config ignitionConfig) error {
	for i, f := range config.Storage.Files {
		if err := r.userdata.putIgnition(f); err != nil {
			return fmt.Errorf("storage.files[%d] (%s): %w", i, f.Path, err)
		}
	}
	for _, unit := range config.Networkd.Units {
		r.userdata.put(File{Path: networkdFolder + unit.Name, Content: unit.Contents}, false)
	}
	for _, user := range config.Passwd.Users {
		r.userdata.Users = append(r.userdata.Users, user.Name)
	}
	for _, unit := range config.Systemd.Units {
		r.putUnit(unit)
	}
	return nil
}

// putUnit adds a unit, or merges it into an earlier unit of the same name.
func (r *ignitionRun) putUnit(unit ignitionUnit) {
	for i := range r.units {
		known := &r.units[i]
		if known.Name != unit.Name {
			continue
		}
		if unit.Contents != "" {
			known.Contents = unit.Contents
		}
		if unit.Enabled != nil {
			known.Enabled = unit.Enabled
		}
		return
	}
	r.units = append(r.units, unit)
}

func (u *Userdata) putIgnition(f ignitionFile) error {
	if !path.IsAbs(f.Path) {
		return errors.New("path is not absolute")
	}
	content, err := decodeDataURL(f.Contents)
	if err != nil {
		return err
	}
	u.put(File{Path: path.Clean(f.Path), Permissions: fmt.Sprintf("%04o", f.Mode), Content: content}, false)
	return nil
}

// unitCommands returns the commands of a unit. For a script that the configuration writes, it adds the lines of the
// script.
func (u *Userdata) unitCommands(contents string) []string {
	var out []string
	for line := range strings.Lines(contents) {
		command, isStart := strings.CutPrefix(strings.TrimSpace(line), "ExecStart=")
		if !isStart {
			continue
		}
		out = append(out, command)
		for _, word := range strings.Fields(command) {
			if script, ok := u.File(word); ok {
				out = append(out, strings.Split(strings.TrimSpace(script.Content), "\n")...)
			}
		}
	}
	return out
}

// decodeDataURL decodes the content of a data URL. Other URLs would require a network, which the simulated guest does
// not have.
func decodeDataURL(from ignitionSource) (string, error) {
	if from.Source == "" {
		return "", nil
	}
	data, isData := strings.CutPrefix(from.Source, "data:")
	header, body, found := strings.Cut(data, ",")
	if !isData || !found {
		return "", errors.New("contents.source is not a data URL")
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		return "", errors.New("contents.source is not a valid data URL")
	}
	content := []byte(text)
	if strings.HasSuffix(header, ";base64") {
		if content, err = decodeBase64(text); err != nil {
			return "", fmt.Errorf("contents.source: %w", err)
		}
	}
	if from.Compression == "gzip" {
		if content, err = gunzip(content); err != nil {
			return "", fmt.Errorf("contents.source: %w", err)
		}
	}
	return string(content), nil
}
