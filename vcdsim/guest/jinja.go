// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// operators replaces the characters in keys for which cloud-init offers an alias with underscores.
var operators = strings.NewReplacer("-", "_", ".", "_")

// variables returns the variables of a template: ds.meta_data and the standard v1 keys, which are also at the top
// level. Keys with hyphens or dots also have an alias.
func (i Identity) variables() map[string]any {
	meta := map[string]any{}
	for key, value := range i.Metadata {
		meta[key] = value
	}
	host := map[string]any{"hostname": i.Hostname, "local-hostname": i.Hostname, "local_hostname": i.Hostname}
	for _, p := range i.Addresses[i.Primary] {
		host["local-ipv6"] = p.Addr().String()
		if p.Addr().Is4() {
			host["local-ipv4"] = p.Addr().String()
			delete(host, "local-ipv6")
		}
	}
	for key, value := range host {
		if _, set := meta[key]; !set {
			meta[key] = value
		}
	}
	v1 := map[string]any{
		"instance-id":    i.InstanceID,
		"local-hostname": i.Hostname,
		"cloud-name":     "vmware",
		"cloud_id":       "vmware",
		"platform":       "vmware",
		"subplatform":    "guestinfo (guestinfo.metadata)",
	}
	top := map[string]any{"ds": map[string]any{"meta_data": meta}, "v1": v1}
	for key, value := range v1 {
		top[key] = value
	}
	aliased, _ := aliases(top).(map[string]any)
	return aliased
}

// aliases adds aliases with underscores to every mapping in v.
func aliases(v any) any {
	values, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for key, value := range values {
		out[key] = aliases(value)
	}
	for key := range values {
		alias := operators.Replace(key)
		if _, set := values[alias]; !set {
			out[alias] = out[key]
		}
	}
	return out
}

// render replaces the Jinja expressions in text. It supports variables, the filters default, lower, upper and trim,
// comments and raw blocks, which is what Cluster API's cloud-init user data uses. An undefined variable is an error:
// cloud-init would only log a warning and leave a useless marker in the text.
func render(text string, vars map[string]any) (string, error) {
	var out strings.Builder
	text = trimBefore.ReplaceAllString(trimAfter.ReplaceAllString(text, "}}"), "{{")
	for rest := text; ; {
		at := strings.Index(rest, "{")
		if at < 0 || at+1 == len(rest) {
			out.WriteString(rest)
			return out.String(), nil
		}
		out.WriteString(rest[:at])
		rendered, after, err := renderTag(rest[at:], vars)
		if err != nil {
			line := 1 + strings.Count(text[:len(text)-len(rest)+at], "\n")
			return "", fmt.Errorf("jinja template, line %d: %w", line, err)
		}
		out.WriteString(rendered)
		rest = after
	}
}

// {{- and -}} also remove the white space before and after them.
var (
	trimBefore = regexp.MustCompile(`\s*\{\{-`)
	trimAfter  = regexp.MustCompile(`-\}\}\s*`)
)

var rawBlock = regexp.MustCompile(`(?s)\A\{%-?\s*raw\s*-?%\}(.*?)\{%-?\s*endraw\s*-?%\}`)

// renderTag renders the tag at the start of text, which begins with a brace, and returns the text after it.
func renderTag(text string, vars map[string]any) (rendered, after string, _ error) {
	switch text[:2] {
	case "{{":
		inner, after, found := strings.Cut(text[2:], "}}")
		if !found {
			return "", "", errors.New("{{ is not closed")
		}
		value, err := evaluate(strings.TrimSpace(inner), vars)
		return value, after, err
	case "{#":
		_, after, found := strings.Cut(text[2:], "#}")
		if !found {
			return "", "", errors.New("{# is not closed")
		}
		return "", after, nil
	case "{%":
		if m := rawBlock.FindStringSubmatch(text); m != nil {
			return m[1], text[len(m[0]):], nil
		}
		return "", "", errors.New("{% statements other than raw are not supported by the simulated guest")
	default:
		return text[:1], text[1:], nil
	}
}

var (
	filter  = regexp.MustCompile(`\A([a-z_]+)\s*(?:\(\s*(.*?)\s*\))?\z`)
	literal = regexp.MustCompile(`\A(?:"([^"]*)"|'([^']*)')\z`)
	step    = regexp.MustCompile(`\A(?:\.?([A-Za-z_]\w*)|\[\s*(?:"([^"]*)"|'([^']*)'|(\d{1,4}))\s*\])`)
)

// evaluate evaluates `path | filter | filter`.
func evaluate(expression string, vars map[string]any) (string, error) {
	parts := strings.Split(expression, "|")
	value, found, err := lookUp(strings.TrimSpace(parts[0]), vars)
	if err != nil {
		return "", err
	}
	for _, part := range parts[1:] {
		m := filter.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return "", fmt.Errorf("filter %q is not understood", strings.TrimSpace(part))
		}
		if m[1] != "default" && m[1] != "d" {
			value, err = applyFilter(m[1], value)
		} else if !found {
			value, found, err = lookUp(m[2], vars)
		}
		if err != nil {
			return "", err
		}
	}
	if !found {
		return "", fmt.Errorf("variable %q does not exist", strings.TrimSpace(parts[0]))
	}
	return value, nil
}

func applyFilter(name, value string) (string, error) {
	switch name {
	case "lower":
		return strings.ToLower(value), nil
	case "upper":
		return strings.ToUpper(value), nil
	case "trim":
		return strings.TrimSpace(value), nil
	default:
		return "", fmt.Errorf("filter %s is not supported by the simulated guest", name)
	}
}

// lookUp resolves a literal or a path such as ds.meta_data['provider-id'].
func lookUp(path string, vars map[string]any) (value string, found bool, _ error) {
	if m := literal.FindStringSubmatch(path); m != nil {
		return m[1] + m[2], true, nil
	}
	var current any = vars
	for rest := path; rest != ""; {
		m := step.FindStringSubmatch(rest)
		if m == nil {
			return "", false, fmt.Errorf("expression %q is not understood", path)
		}
		rest = rest[len(m[0]):]
		current = descend(current, m[1]+m[2]+m[3], m[4])
	}
	if path == "" || current == nil {
		return "", false, nil
	}
	text := scalar(current)
	if _, isText := current.(string); text == "" && !isText {
		return "", false, fmt.Errorf("%s is not a simple value", path)
	}
	return text, true, nil
}

func descend(v any, key, index string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[key]
	case []any:
		if i, err := strconv.Atoi(index); err == nil && i < len(v) {
			return v[i]
		}
	}
	return nil
}
