// SPDX-License-Identifier: Apache-2.0

// Package ccmconfig reads the configuration of the cloud controller manager into a schema: one struct per cloud, whose
// tags describe its keys. It reports all problems at once, with key, line and remedy. It has no code for a specific
// cloud.
//
// Tags of a field:
//   - json: the key. Marshalling a schema as YAML or JSON writes a configuration that Decode reads.
//   - alias: a second key with the same meaning.
//   - commas: whether a single value may be a list separated by commas.
//   - kind: the kind of the value, for the documentation; by default, it follows from the type.
//   - default: the value used if the key is absent or empty.
//   - fallback: the behavior without a value, for the documentation.
//   - env: an environment variable. Its value is used if the file has none, or in any case; [Environment] selects which.
//   - enum: the only allowed values, separated by commas.
//   - required: the instruction that is reported if there is no value.
//   - ignored: the reason why the key, of type [Ignored], has no effect.
package ccmconfig

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// An Environment is the data outside of the file that a configuration refers to.
type Environment struct {
	Getenv   func(name string) string
	ReadFile func(name string) ([]byte, error)
	// Environ returns all variables as name=value. Nil means that only Getenv is used.
	Environ func() []string
	// VariablesWin means that variables take precedence over the file.
	VariablesWin bool
}

// Decode reads a YAML file into schema, a pointer to a struct. It returns an error only if the file is not YAML. The
// report contains all other problems.
func Decode(file []byte, schema any, env Environment) (*Report, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(file, &document); err != nil {
		return nil, fmt.Errorf("the configuration is not YAML: %w", err)
	}
	if len(document.Content) == 0 {
		return DecodeNode(nil, schema, env), nil
	}
	return DecodeNode(document.Content[0], schema, env), nil
}

// DecodeNode reads the parsed content of a file into schema. Nil content means that the file is empty.
func DecodeNode(content *yaml.Node, schema any, env Environment) *Report {
	d := &decoder{keys: Keys(schema), env: env, report: &Report{lines: map[string]int{}, written: map[string]string{}}}
	into := reflect.ValueOf(schema).Elem()
	if content != nil {
		d.section("", content, into)
	}
	d.complete("", into)
	return d.report
}

// ReadCA returns the trusted certificate authorities, from the text at a key, or from the file that the key with suffix
// File names.
func ReadCA(r *Report, env Environment, key, text, file string) string {
	switch {
	case text != "" && file != "":
		r.Problem(key+"File", "cannot be set together with %s: keep one", key)
		return text
	case file != "":
		data, err := env.ReadFile(file)
		key += "File"
		if err != nil {
			r.Problem(key, "cannot be read: %v", err)
			return ""
		}
		text = string(data)
	}
	if (text != "" || file != "") && !x509.NewCertPool().AppendCertsFromPEM([]byte(text)) {
		r.Problem(key, "contains no certificate in PEM format")
	}
	return text
}

// A Report contains the problems of a configuration.
type Report struct {
	Warnings []string          // for example about keys without effect
	lines    map[string]int    // by path
	written  map[string]string // paths as written in the file, if they differ
	problems []problem
}

type problem struct {
	line int // 0: the key is not in the file
	error
}

// Warn adds a warning.
func (r *Report) Warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// Problem adds a problem with a key, whether or not the key is in the file.
func (r *Report) Problem(path, format string, args ...any) {
	r.problemAt(path, r.lines[path], fmt.Sprintf(format, args...))
}

// Between adds a problem if a duration is too short or too long.
func (r *Report) Between(path string, d, least, most time.Duration) {
	if d < least || d > most {
		r.Problem(path, "is %s, but must be from %s to %s", d, least, most)
	}
}

func (r *Report) problemAt(path string, line int, text string) {
	path = cmp.Or(r.written[path], path)
	if line > 0 {
		path = fmt.Sprintf("%s (line %d)", path, line)
	}
	r.problems = append(r.problems, problem{line, errors.New(path + ": " + text)})
}

// Err returns all problems, one per line, in the order of the file.
func (r *Report) Err() error {
	slices.SortStableFunc(r.problems, func(a, b problem) int { return a.line - b.line })
	var all []error
	for _, p := range r.problems {
		all = append(all, p.error)
	}
	return errors.Join(all...)
}

type decoder struct {
	keys   []Key
	env    Environment
	report *Report
}

// section reads the keys of a mapping.
func (d *decoder) section(path string, n *yaml.Node, into reflect.Value) {
	n = resolved(n)
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		if path == "" {
			path = "the configuration"
		}
		d.report.problemAt(path, n.Line, "must contain keys and values")
		return
	}
	fields := fieldsOf(into.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		d.key(path, fields, n.Content[i], n.Content[i+1], into)
	}
}

// key reads one key of a section with its value.
func (d *decoder) key(path string, fields []reflect.StructField, name, value *yaml.Node, into reflect.Value) {
	f := slices.IndexFunc(fields, func(f reflect.StructField) bool {
		return nameOf(f) == name.Value || f.Tag.Get("alias") == name.Value
	})
	at := join(path, name.Value)
	if f >= 0 {
		at = join(path, nameOf(fields[f]))
	}
	if written := join(cmp.Or(d.report.written[path], path), name.Value); written != at {
		d.report.written[at] = written
	}
	if d.report.lines[at] > 0 {
		d.report.problemAt(at, name.Line, "is duplicated: keep one")
		return
	}
	d.report.lines[at] = name.Line
	if f < 0 {
		d.report.Problem(at, "is not a key of the configuration: %s", d.suggestion(name.Value))
		return
	}
	d.value(fields[f], at, resolved(value), into.FieldByIndex(fields[f].Index))
}

// value reads the value of one key.
func (d *decoder) value(f reflect.StructField, path string, n *yaml.Node, into reflect.Value) {
	n = listed(f, n)
	element := elementOf(f.Type)
	_, isScalar := scalarOf(element)
	switch {
	case element == reflect.TypeFor[Ignored]():
		why := strings.ReplaceAll(f.Tag.Get("ignored"), "'", "")
		d.report.Warn("%s (line %d) has no effect: %s; remove it", cmp.Or(d.report.written[path], path),
			d.report.lines[path], why)
	case isNull(n): // the same as an absent key
	case f.Type.Kind() == reflect.Slice && n.Kind != yaml.SequenceNode:
		d.report.Problem(path, "must be a list")
	case isScalar:
		if err := scalarsInto(f, n, into); err != nil {
			d.report.Problem(path, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	default:
		d.sections(f, path, n, into)
	}
}

// sections reads a section, or a list of them.
func (d *decoder) sections(f reflect.StructField, path string, n *yaml.Node, into reflect.Value) {
	switch f.Type.Kind() {
	case reflect.Slice:
		into.Set(reflect.MakeSlice(f.Type, len(n.Content), len(n.Content)))
		for i, section := range n.Content {
			d.section(fmt.Sprintf("%s[%d]", path, i), section, into.Index(i))
		}
	case reflect.Map:
		d.named(f.Type, path, n, into)
	case reflect.Pointer: // An empty section is the same as an absent one.
		section := reflect.New(f.Type.Elem())
		if d.section(path, n, section.Elem()); !section.Elem().IsZero() {
			into.Set(section)
		}
	default:
		d.section(path, n, into)
	}
}

// named reads sections with user-defined names.
func (d *decoder) named(t reflect.Type, path string, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.report.Problem(path, "must contain a section for each name")
		return
	}
	into.Set(reflect.MakeMap(t))
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		at := join(path, n.Content[i].Value)
		if written := d.report.written[path]; written != "" {
			d.report.written[at] = join(written, name.Value)
		}
		if d.report.lines[at] > 0 {
			d.report.problemAt(at, name.Line, "is duplicated: keep one")
			continue
		}
		d.report.lines[at] = name.Line
		section := reflect.New(t.Elem().Elem())
		d.section(at, n.Content[i+1], section.Elem())
		into.SetMapIndex(reflect.ValueOf(name.Value), section)
	}
}

// listed splits a single value if it may be a list separated by commas.
func listed(f reflect.StructField, n *yaml.Node) *yaml.Node {
	if f.Tag.Get("commas") == "" || n.Kind != yaml.ScalarNode || isNull(n) {
		return n
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line}
	for _, text := range splitList(n.Value) {
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: n.Line})
	}
	return list
}

// splitList returns the non-empty elements of a list separated by commas.
func splitList(text string) []string {
	var out []string
	for s := range strings.SplitSeq(text, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// scalarsInto sets a single value or a list of values. An empty single value keeps the current value.
func scalarsInto(f reflect.StructField, n *yaml.Node, into reflect.Value) error {
	if f.Type.Kind() != reflect.Slice {
		text, err := textOf(n)
		if err != nil || text == "" {
			return err
		}
		return textInto(f, text, into)
	}
	into.Set(reflect.MakeSlice(f.Type, len(n.Content), len(n.Content)))
	var problems []error
	for i, element := range n.Content {
		text, err := textOf(resolved(element))
		if err == nil {
			err = textInto(f, text, into.Index(i))
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("element %d %w", i+1, err))
		}
	}
	return errors.Join(problems...)
}

func textOf(n *yaml.Node) (string, error) {
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("must be a single value")
	case isNull(n):
		return "", nil
	}
	return n.Value, nil
}

func textInto(f reflect.StructField, text string, into reflect.Value) error {
	known, _ := scalarOf(elementOf(f.Type))
	value, err := known.parse(text)
	if err != nil {
		return err
	}
	if enum := f.Tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), text) {
		return fmt.Errorf("is %q, but must be %s", text, strings.ReplaceAll(enum, ",", " or "))
	}
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	into.Set(reflect.ValueOf(value).Convert(into.Type()))
	return nil
}

// complete sets missing values from the environment and from defaults, and reports required values that are missing.
func (d *decoder) complete(path string, section reflect.Value) {
	for _, f := range fieldsOf(section.Type()) {
		at := join(path, nameOf(f))
		value := section.FieldByIndex(f.Index)
		if _, ok := scalarOf(elementOf(f.Type)); ok {
			d.completeValue(f, at, value)
			continue
		}
		switch f.Type.Kind() {
		case reflect.Slice:
			for i := range value.Len() {
				d.complete(fmt.Sprintf("%s[%d]", at, i), value.Index(i))
			}
		case reflect.Map:
			for _, name := range slices.Sorted(maps.Keys(namesOf(value))) {
				d.complete(join(at, name), value.MapIndex(reflect.ValueOf(name)).Elem())
			}
		case reflect.Pointer:
			if !value.IsNil() {
				d.complete(at, value.Elem())
			}
		default:
			d.complete(at, value)
		}
	}
}

func (d *decoder) completeValue(f reflect.StructField, path string, into reflect.Value) {
	text := f.Tag.Get("default")
	from := ""
	if name := f.Tag.Get("env"); name != "" && d.env.Getenv != nil {
		text = d.env.Getenv(name)
		from = "variable " + name + " "
	}
	wins := into.IsZero() || from != "" && d.env.VariablesWin
	if text != "" && wins {
		if err := completed(f, text, into); err != nil {
			d.report.Problem(path, "%s%s", from, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	if want := f.Tag.Get("required"); want != "" && into.IsZero() {
		d.report.Problem(path, "is missing: %s", want)
	}
}

// completed sets a value, or a list separated by commas.
func completed(f reflect.StructField, text string, into reflect.Value) error {
	if f.Type.Kind() != reflect.Slice {
		return textInto(f, text, into)
	}
	return scalarsInto(f, listed(f, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}), into)
}

// namesOf returns the names of the sections of a map.
func namesOf(value reflect.Value) map[string]bool {
	names := map[string]bool{}
	for _, key := range value.MapKeys() {
		names[key.String()] = true
	}
	return names
}

// suggestion returns the remedy for an unknown key.
func (d *decoder) suggestion(name string) string {
	var found []string
	for _, k := range d.keys {
		if strings.EqualFold(nameOf(k.Field), name) {
			found = append(found, strings.ReplaceAll(k.Path, "[]", "[…]"))
		}
	}
	if len(found) == 0 {
		return "remove it, or correct its spelling"
	}
	slices.Sort(found)
	return strings.Join(found, " or ") + " may be intended"
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
