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

// ignitionConfig is the part of an ignition configuration that this guest follows. Specification 2 names the file
// system of a file, specification 3 does not; the rest is the same.
type ignitionConfig struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	Passwd struct {
		Users []struct {
			Name string `json:"name"`
		} `json:"users"`
	} `json:"passwd"`
	Storage struct {
		Files []ignitionFile `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []struct {
			Name     string `json:"name"`
			Enabled  *bool  `json:"enabled"`
			Contents string `json:"contents"`
		} `json:"units"`
	} `json:"systemd"`
}

type ignitionFile struct {
	Path     string `json:"path"`
	Mode     int    `json:"mode"`
	Contents struct {
		Source      string `json:"source"`
		Compression string `json:"compression"`
	} `json:"contents"`
}

func parseIgnition(text string) (*Userdata, error) {
	var config ignitionConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return nil, errors.New("not an ignition configuration in JSON")
	}
	if v := config.Ignition.Version; !strings.HasPrefix(v, "2.") && !strings.HasPrefix(v, "3.") {
		return nil, fmt.Errorf("ignition.version %q is neither 2.x nor 3.x", v)
	}
	u := &Userdata{Format: "ignition"}
	for i, f := range config.Storage.Files {
		if err := u.putIgnition(f); err != nil {
			return nil, fmt.Errorf("storage.files[%d] (%s): %w", i, f.Path, err)
		}
	}
	for _, user := range config.Passwd.Users {
		u.Users = append(u.Users, user.Name)
	}
	for _, unit := range config.Systemd.Units {
		if unit.Enabled == nil || *unit.Enabled {
			u.Commands = append(u.Commands, u.unitCommands(unit.Contents)...)
		}
	}
	return u, nil
}

func (u *Userdata) putIgnition(f ignitionFile) error {
	if !path.IsAbs(f.Path) {
		return errors.New("path is not absolute")
	}
	content, err := decodeDataURL(f.Contents.Source, f.Contents.Compression)
	if err != nil {
		return err
	}
	u.put(File{Path: path.Clean(f.Path), Permissions: fmt.Sprintf("%04o", f.Mode), Content: content}, false)
	return nil
}

// unitCommands returns what a unit starts, with the lines of a script that the configuration itself writes.
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

// decodeDataURL decodes the contents of a file; other URLs would need a network that the simulated guest does not have.
func decodeDataURL(source, compression string) (string, error) {
	if source == "" {
		return "", nil
	}
	data, isData := strings.CutPrefix(source, "data:")
	header, body, found := strings.Cut(data, ",")
	if !isData || !found {
		return "", errors.New("contents.source is not a data URL")
	}
	var content []byte
	text, err := url.PathUnescape(body)
	if err != nil {
		return "", errors.New("contents.source is not a valid data URL")
	}
	content = []byte(text)
	if strings.HasSuffix(header, ";base64") {
		if content, err = unbase64(text); err != nil {
			return "", fmt.Errorf("contents.source: %w", err)
		}
	}
	if compression == "gzip" {
		if content, err = gunzip(content); err != nil {
			return "", fmt.Errorf("contents.source: %w", err)
		}
	}
	return string(content), nil
}
