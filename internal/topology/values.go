// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"
)

// of returns the value of an operation in a patch.
func (v values) of(patch clusterv1.JSONPatch) (json.RawMessage, error) {
	var value any
	var err error
	switch from := patch.ValueFrom; {
	case patch.Value != nil && from == nil:
		return patch.Value.Raw, nil
	case patch.Value == nil && from != nil && from.Variable != "" && from.Template == "":
		value, err = v.lookUp(from.Variable)
	case patch.Value == nil && from != nil && from.Variable == "" && from.Template != "":
		value, err = v.render(from.Template)
	default:
		return nil, errors.New("it requires one of value, valueFrom.variable and valueFrom.template")
	}
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("reading its value: %w", err)
	}
	return raw, nil
}

// lookUp returns the value at a path, such as networks[0].name, whose first segment is the name of a variable.
func (v values) lookUp(path string) (any, error) {
	value := any(map[string]any(v))
	for _, segment := range strings.Split(path, ".") {
		name, index, indexed, err := parseSegment(segment)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", path, err)
		}
		fields, _ := value.(map[string]any)
		found := false
		if value, found = fields[name]; !found {
			return nil, fmt.Errorf("variable %s does not exist: there is no %q", path, name)
		}
		if !indexed {
			continue
		}
		items, isList := value.([]any)
		if !isList || index >= len(items) {
			return nil, fmt.Errorf("variable %s does not exist: %s has no item %d", path, name, index)
		}
		value = items[index]
	}
	return value, nil
}

// parseSegment parses a name that may be followed by the index of an item.
func parseSegment(segment string) (name string, index int, indexed bool, err error) {
	name, rest, indexed := strings.Cut(segment, "[")
	if !indexed {
		return name, 0, false, nil
	}
	digits, closed := strings.CutSuffix(rest, "]")
	index, err = strconv.Atoi(digits)
	if !closed || err != nil || index < 0 {
		return "", 0, false, fmt.Errorf("%q is not a name with an index", segment)
	}
	return name, index, true, nil
}

// render renders a Go template and decodes its output as YAML.
func (v values) render(text string) (any, error) {
	parsed, err := template.New("value").Funcs(sprig.HermeticTxtFuncMap()).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	var rendered bytes.Buffer
	// Use a copy, because functions such as set modify their arguments.
	if err := parsed.Execute(&rendered, runtime.DeepCopyJSON(v)); err != nil {
		return nil, fmt.Errorf("rendering the template: %w", err)
	}
	var value any
	if err := yaml.Unmarshal(rendered.Bytes(), &value); err != nil {
		return nil, fmt.Errorf("the template renders to %q, which is not YAML: %w", rendered.String(), err)
	}
	return value, nil
}
