package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An Environment is what the file alone does not say.
type Environment struct {
	ClusterID string                            // CLUSTER_ID
	ReadFile  func(name string) ([]byte, error) // reads what the file refers to
}

// Parse reads the file. The error says everything that is wrong, one line each.
func Parse(file []byte, env Environment) (Config, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(file, &document); err != nil {
		return Config{}, fmt.Errorf("the configuration is no YAML: %w", err)
	}
	p := &parser{known: map[string]key{}}
	for _, k := range keys() {
		p.known[k.path] = k
	}
	if len(document.Content) > 0 {
		p.mapping("", "", document.Content[0])
	}
	p.complete(env)
	p.validate()
	slices.SortStableFunc(p.problems, func(a, b problem) int { return a.line - b.line })
	var problems []error
	for _, problem := range p.problems {
		problems = append(problems, problem)
	}
	return p.config, errors.Join(problems...)
}

// A problem is one thing that is wrong.
type problem struct {
	path, text string
	line       int // 0: of the file as a whole
}

// Error implements error.
func (p problem) Error() string {
	if p.line == 0 {
		return p.path + ": " + p.text
	}
	return fmt.Sprintf("%s (line %d): %s", p.path, p.line, p.text)
}

type parser struct {
	known    map[string]key
	config   Config
	lines    map[string]int // by path, of what was read
	problems []problem
}

func (p *parser) wrong(path string, line int, format string, args ...any) {
	p.problems = append(p.problems, problem{path, fmt.Sprintf(format, args...), line})
}

// mapping reads the keys of a section: template is its path in the table, path the one that people see.
func (p *parser) mapping(template, path string, n *yaml.Node) {
	n = resolved(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.wrong(cmpPath(path), n.Line, "must hold keys and values")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], resolved(n.Content[i+1])
		at := join(path, name.Value)
		if seen[name.Value] {
			p.wrong(at, name.Line, "is there twice: keep one")
			continue
		}
		seen[name.Value] = true
		p.entry(join(template, name.Value), at, name.Line, value)
	}
}

// entry reads one key.
func (p *parser) entry(template, path string, line int, value *yaml.Node) {
	k, ok := p.known[template]
	if !ok {
		p.wrong(path, line, "is no key of the configuration%s", p.suggestion(template))
		return
	}
	if p.lines == nil {
		p.lines = map[string]int{}
	}
	p.lines[path] = line
	switch {
	case k.dead != "":
		p.config.Warnings = append(p.config.Warnings, fmt.Sprintf("%s (line %d) does nothing: %s; remove it", path, line, strings.ReplaceAll(k.dead, "`", "")))
	case k.set != nil:
		if err := k.set(&p.config, value); err != nil {
			p.wrong(path, line, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	case p.known[template+"[]"].begin != nil:
		p.elements(template+"[]", path, value)
	default:
		p.mapping(template, path, value)
	}
}

// elements reads a list of sections.
func (p *parser) elements(template, path string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		p.wrong(path, n.Line, "must be a list")
		return
	}
	for i, element := range n.Content {
		p.known[template].begin(&p.config)
		p.mapping(template, fmt.Sprintf("%s[%d]", path, i), element)
	}
}

// suggestion finds a key that may be meant.
func (p *parser) suggestion(path string) string {
	name := path[strings.LastIndex(path, ".")+1:]
	var found []string
	for known, k := range p.known {
		if k.set != nil && strings.EqualFold(known[strings.LastIndex(known, ".")+1:], name) {
			found = append(found, strings.ReplaceAll(known, "[]", "[…]"))
		}
	}
	if len(found) == 0 {
		return ": remove it, or correct its spelling"
	}
	slices.Sort(found)
	return ": " + strings.Join(found, " or ") + " may be meant"
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func cmpPath(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}
