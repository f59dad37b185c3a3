// SPDX-License-Identifier: Apache-2.0

package ccmconfig

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// IsINI reports whether a file begins with a section header, which no YAML configuration does.
func IsINI(file []byte) bool {
	for line := range strings.Lines(string(file)) {
		if text := strings.TrimSpace(line); text != "" && !strings.ContainsAny(text[:1], "#;") {
			return text[0] == '['
		}
	}
	return false
}

// ParseINI parses a file for [DecodeNode]. A section becomes a mapping, and [section "name"] a mapping inside it. Names
// of sections and keys are converted to lower case. The error contains all syntax errors, one per line.
func ParseINI(file []byte) (*yaml.Node, error) {
	p := &iniParser{root: &yaml.Node{Kind: yaml.MappingNode, Line: 1}}
	var problems []error
	number := 0
	for line := range strings.Lines(string(file)) {
		number++
		if err := p.line(strings.TrimSpace(line), number); err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", number, err))
		}
	}
	return p.root, errors.Join(problems...)
}

type iniParser struct{ root, section *yaml.Node }

func (p *iniParser) line(text string, number int) error {
	switch {
	case text == "" || strings.ContainsAny(text[:1], "#;"):
		return nil
	case text[0] == '[':
		return p.header(text, number)
	case p.section == nil:
		return errors.New(`is before the first section: begin with a line such as [Global]`)
	}
	name, rest, found := strings.Cut(text, "=")
	if !found { // a key without a value means true
		name, _, _ = strings.Cut(strings.NewReplacer("#", ";").Replace(text), ";")
		rest = "true"
	}
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" || strings.ContainsAny(name, " \t\"") {
		return errors.New("is not a line of the form key = value")
	}
	value, err := iniValue(strings.TrimSpace(rest))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	put(p.section, name, number, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: number})
	return nil
}

// header starts a section: [name] or [name "sub"]. A section may be continued later.
func (p *iniParser) header(text string, number int) error {
	inner, rest, found := strings.Cut(text[1:], "]")
	if rest = strings.TrimSpace(rest); !found || rest != "" && !strings.ContainsAny(rest[:1], "#;") {
		return errors.New(`is not a header of the form [section] or [section "name"]`)
	}
	name, sub, hasSub := strings.Cut(strings.TrimSpace(inner), " ")
	p.section = p.mapping(p.root, strings.ToLower(name), number)
	if !hasSub {
		return nil
	}
	value, err := iniValue(strings.TrimSpace(sub))
	if err != nil {
		return err
	}
	p.section = p.mapping(p.section, value, number)
	return nil
}

// mapping returns the section with a name. It creates the section if it does not exist.
func (p *iniParser) mapping(in *yaml.Node, name string, number int) *yaml.Node {
	for i := 0; i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value == name && in.Content[i+1].Kind == yaml.MappingNode {
			return in.Content[i+1]
		}
	}
	section := &yaml.Node{Kind: yaml.MappingNode, Line: number}
	put(in, name, number, section)
	return section
}

func put(in *yaml.Node, name string, number int, value *yaml.Node) {
	in.Content = append(in.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: number}, value)
}

// iniValue returns a value without quotes, escapes and a trailing comment.
func iniValue(text string) (string, error) {
	var out strings.Builder
	quoted := false
	kept := 0 // length of the quoted text, whose trailing spaces are kept
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
			kept = out.Len()
		case c == '\\':
			i++
			if i == len(text) {
				return "", errors.New(`ends with a backslash: write a value in one line, and a backslash as \\`)
			}
			escaped, known := map[byte]string{'\\': `\`, '"': `"`, 'n': "\n", 't': "\t"}[text[i]]
			if !known {
				return "", fmt.Errorf(`contains \%c: write a backslash as \\`, text[i])
			}
			out.WriteString(escaped)
			kept = out.Len()
		case !quoted && (c == '#' || c == ';'):
			return trimFrom(out.String(), kept), nil
		default:
			out.WriteByte(c)
		}
	}
	if quoted {
		return "", errors.New("has an unclosed quotation mark")
	}
	return trimFrom(out.String(), kept), nil
}

// trimFrom removes trailing spaces, but none before an index.
func trimFrom(s string, kept int) string { return s[:kept] + strings.TrimRight(s[kept:], " \t") }
