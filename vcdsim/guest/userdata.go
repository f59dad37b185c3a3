// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Userdata is what the guest does on its first boot, independent of the format.
type Userdata struct {
	// Format is "cloud-config" or "ignition".
	Format string
	// Files are in the order in which they are written. Appended parts are already joined.
	Files []File
	// Commands run in this order, after the files are written.
	Commands []string
	// Users are the login names that are created.
	Users []string
}

// File is a file that the guest writes.
type File struct {
	Path        string
	Owner       string
	Permissions string
	Content     string
}

// File returns the file at path. The second result reports whether the guest writes it.
func (u *Userdata) File(path string) (File, bool) {
	for _, f := range u.Files {
		if f.Path == path {
			return f, true
		}
	}
	return File{}, false
}

var templateHeader = regexp.MustCompile(`(?i)\A##\s*template:([^\n]*)(?:\n|\z)`)

// readUserdata finds and parses the user data. It returns nil without an error if there is none.
func readUserdata(info guestinfo, id Identity) (*Userdata, error) {
	text, err := info.decode("userdata")
	if err != nil || text == "" {
		return nil, err
	}
	u, err := parseUserdata(text, id)
	if err != nil {
		return nil, fmt.Errorf("guestinfo.userdata: %w", err)
	}
	return u, nil
}

func parseUserdata(text string, id Identity) (*Userdata, error) {
	text = strings.TrimLeft(text, " \t\r\n")
	if m := templateHeader.FindStringSubmatch(text); m != nil {
		if kind := strings.TrimSpace(m[1]); !strings.EqualFold(kind, "jinja") {
			return nil, fmt.Errorf("template %q is not jinja", kind)
		}
		rendered, err := render(text[len(m[0]):], id.variables())
		if err != nil {
			return nil, err
		}
		text = strings.TrimLeft(rendered, " \t\r\n")
	}
	if !strings.HasPrefix(strings.ToLower(text), "#cloud-config") {
		return nil, errors.New(
			"does not begin with #cloud-config (after an optional `## template: jinja`), so cloud-init ignores it")
	}
	config, err := parseMapping(text)
	if err != nil {
		return nil, err
	}
	return parseCloudConfig(config)
}

func parseCloudConfig(config map[string]any) (*Userdata, error) {
	u := &Userdata{Format: "cloud-config"}
	files, isList := config["write_files"].([]any)
	if !isList && config["write_files"] != nil {
		return nil, errors.New("write_files is not a list")
	}
	for i, item := range files {
		entry, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("write_files[%d] is not a mapping", i)
		}
		if err := u.write(entry); err != nil {
			return nil, fmt.Errorf("write_files[%d]: %w", i, err)
		}
	}
	for _, key := range []string{"bootcmd", "runcmd"} {
		commands, err := parseCommands(config[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		u.Commands = append(u.Commands, commands...)
	}
	var err error
	u.Users, err = parseUsers(config["users"])
	return u, err
}

// write adds a file, or appends to an existing one.
func (u *Userdata) write(entry map[string]any) error {
	f := File{Path: scalar(entry["path"]), Owner: scalar(entry["owner"]), Permissions: scalar(entry["permissions"])}
	if f.Path == "" {
		return errors.New("no path")
	}
	if !path.IsAbs(f.Path) {
		return fmt.Errorf("path %s is not absolute", f.Path)
	}
	f.Path = path.Clean(f.Path)
	if _, ok := entry["content"].(string); !ok && entry["content"] != nil {
		return fmt.Errorf("content of %s is not text", f.Path)
	}
	var err error
	if f.Content, err = decodeFile(scalar(entry["encoding"]), scalar(entry["content"])); err != nil {
		return fmt.Errorf("content of %s: %w", f.Path, err)
	}
	u.put(f, isTrue(entry["append"]))
	return nil
}

func (u *Userdata) put(f File, add bool) {
	for i := range u.Files {
		if u.Files[i].Path != f.Path {
			continue
		}
		if add {
			f.Content = u.Files[i].Content + f.Content
		}
		u.Files[i] = f
		return
	}
	u.Files = append(u.Files, f)
}

// decodeFile decodes the encodings of cloud-init's write_files, which differ from those of guestinfo.
func decodeFile(encoding, content string) (string, error) {
	var data []byte
	var err error
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "text/plain":
		return content, nil
	case "gz", "gzip":
		data, err = gunzip([]byte(content))
	case "gz+base64", "gzip+base64", "gz+b64", "gzip+b64":
		if data, err = decodeBase64(content); err == nil {
			data, err = gunzip(data)
		}
	case "b64", "base64":
		data, err = decodeBase64(content)
	default:
		return "", fmt.Errorf("encoding %q is unknown, cloud-init would write the encoded text", encoding)
	}
	return string(data), err
}

// parseCommands parses bootcmd or runcmd: strings, or lists that run without a shell.
func parseCommands(v any) ([]string, error) {
	list, isList := v.([]any)
	if !isList {
		if v != nil {
			return nil, errors.New("not a list")
		}
		return nil, nil
	}
	var out []string
	for i, item := range list {
		switch item := item.(type) {
		case string:
			out = append(out, item)
		case []any:
			out = append(out, strings.Join(texts(item), " "))
		case nil:
		default:
			return nil, fmt.Errorf("entry %d is neither a string nor a list: cloud-init runs none of the commands", i)
		}
	}
	return out, nil
}

func parseUsers(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' }), nil
	case []any:
		var names []string
		for i, item := range v {
			name := scalar(item)
			if user, ok := item.(map[string]any); ok {
				name = scalar(user["name"])
			}
			if name == "" {
				return nil, fmt.Errorf("users[%d] has no name", i)
			}
			names = append(names, name)
		}
		return names, nil
	default:
		return nil, errors.New("users is not a list")
	}
}
