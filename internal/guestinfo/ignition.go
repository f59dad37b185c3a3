// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// ignitionConfig is what may configure the network, of versions 2 and 3 of Ignition's specification.
type ignitionConfig struct {
	Ignition struct {
		Config struct {
			Append  []any `json:"append"`
			Merge   []any `json:"merge"`
			Replace struct {
				Source string `json:"source"`
			} `json:"replace"`
		} `json:"config"`
	} `json:"ignition"`
	Networkd struct {
		Units []any `json:"units"`
	} `json:"networkd"`
	Storage struct {
		Files []struct {
			Path     string `json:"path"`
			Contents struct {
				Source string `json:"source"`
			} `json:"contents"`
		} `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []struct {
			Contents string `json:"contents"`
		} `json:"units"`
	} `json:"systemd"`
}

// networkFolders are where files configure the network of a guest.
var networkFolders = []string{
	"/etc/systemd/network/",
	"/usr/lib/systemd/network/",
	"/etc/NetworkManager/",
	"/etc/netplan/",
}

// ConfiguresNetwork reports whether bootstrap data of format ignition may configure the guest's network itself: by
// files, by software that reads guestinfo.metadata, or by a configuration from elsewhere. Without that, a guest has only
// the addresses that it gets by DHCP.
func ConfiguresNetwork(data []byte) bool {
	var config ignitionConfig
	if err := json.Unmarshal(data, &config); err != nil {
		return true // The guest may read what this package does not.
	}
	remote := config.Ignition.Config
	if len(remote.Append) > 0 || len(remote.Merge) > 0 || remote.Replace.Source != "" || len(config.Networkd.Units) > 0 {
		return true
	}
	for _, unit := range config.Systemd.Units {
		if strings.Contains(unit.Contents, KeyMetadata) {
			return true
		}
	}
	for _, file := range config.Storage.Files {
		below := func(folder string) bool { return strings.HasPrefix(file.Path, folder) }
		if slices.ContainsFunc(networkFolders, below) || mentionsMetadata(file.Contents.Source) {
			return true
		}
	}
	return false
}

// mentionsMetadata reports whether the contents of a file, in a data URL, name guestinfo.metadata.
func mentionsMetadata(source string) bool {
	head, text, isData := strings.Cut(source, ",")
	if !isData || !strings.HasPrefix(head, "data:") {
		return false
	}
	content, err := url.PathUnescape(text)
	if err != nil {
		return false
	}
	if strings.HasSuffix(head, ";base64") {
		decoded, err := base64.StdEncoding.DecodeString(content)
		return err == nil && bytes.Contains(decoded, []byte(KeyMetadata))
	}
	return strings.Contains(content, KeyMetadata)
}
