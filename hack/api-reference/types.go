// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An apiType is a type of the API in the JSON of the template.
type apiType struct {
	Name    string  `json:"name"`
	Doc     string  `json:"doc"`
	Alias   string  `json:"alias"`
	Root    bool    `json:"root"`
	Markers markers `json:"markers"`
	// Fields and Values each end with a null.
	Fields []*field `json:"fields"`
	Values []*field `json:"values"`
}

// A field is a field of a type, or one of its values, which has only a name and a comment.
type field struct {
	Name    string  `json:"name"`
	Doc     string  `json:"doc"`
	Type    string  `json:"type"`
	Default string  `json:"default"`
	Markers markers `json:"markers"`
}

func (t apiType) fields() []*field { return t.Fields[:len(t.Fields)-1] }
func (t apiType) values() []*field { return t.Values[:len(t.Values)-1] }

// markdown returns the section of a type. inherited returns the rules of the type of a field.
func (t apiType) markdown(inherited func(fieldType string) []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n%s\n", t.Name, paragraph(t.Doc))
	if t.Alias != "" && len(t.values()) == 0 {
		fmt.Fprintf(&b, "\nType: %s%s.\n", t.Alias, joinConstraints(t.Markers.constraints()))
	}
	if rules := t.rules(); len(rules) > 0 {
		fmt.Fprintf(&b, "\nValidation: %s.\n", strings.Join(rules, "; "))
	}
	if len(t.fields()) > 0 || len(t.values()) > 0 {
		b.WriteString("\n")
	}
	for _, f := range t.fields() {
		b.WriteString(f.markdown(inherited))
	}
	for _, v := range t.values() {
		fmt.Fprintf(&b, "- `%s`: %s\n", v.Name, constantName.ReplaceAllString(paragraph(v.Doc), ""))
	}
	return b.String()
}

// rules returns the rules of a type. Its values are in a separate list.
func (t apiType) rules() []string {
	rules := t.Markers.rules("")
	if len(t.values()) == 0 {
		return rules
	}
	return slices.DeleteFunc(rules, func(rule string) bool { return strings.HasPrefix(rule, "one of ") })
}

// constantName matches the start of a constant's comment.
var constantName = regexp.MustCompile(`^[A-Z]\w+ is `)

// markdown returns the list item of a field. It omits the validations that the type of the field has.
func (f *field) markdown(inherited func(fieldType string) []string) string {
	facts := f.Type
	if f.Markers.has("required") {
		facts += ", required"
	}
	if f.Default != "" {
		facts += ", default `" + strings.Trim(f.Default, `"`) + "`"
	}
	facts += joinConstraints(f.Markers.constraints())
	doc := f.Doc
	if f.Name == "metadata" {
		doc = "Standard metadata of Kubernetes objects."
	}
	text := fmt.Sprintf("- **`%s`** (%s)", f.Name, facts)
	if doc != "" {
		text += "  \n  " + paragraph(doc)
	}
	known := inherited(f.Type)
	rules := slices.DeleteFunc(f.Markers.rules(""), func(rule string) bool { return slices.Contains(known, rule) })
	rules = append(rules, f.Markers.rules("items:")...)
	switch {
	case len(rules) > 2:
		text += "  \n  Validation:\n  - " + strings.Join(rules, "\n  - ")
	case len(rules) > 0:
		text += "  \n  Validation: " + strings.Join(rules, "; ") + "."
	}
	return text + "\n"
}

func joinConstraints(constraints []string) string {
	if len(constraints) == 0 {
		return ""
	}
	return ", " + strings.Join(constraints, ", ")
}

// paragraph puts a comment on one line, so that it stays in its list item, and escapes braces and angle brackets.
func paragraph(doc string) string {
	return strings.NewReplacer("{", "\\{", "}", "\\}", "<", "\\<").Replace(strings.Join(strings.Fields(doc), " "))
}

// markers are the markers of controller-gen, by name without the prefix of validations.
type markers map[string][]json.RawMessage

func (m markers) has(name string) bool { return len(m[name]) > 0 }

// value returns the value of a validation as text, or "" if it is missing.
func (m markers) value(name string) string {
	values := m["kubebuilder:validation:"+name]
	if len(values) == 0 {
		return ""
	}
	return strings.Trim(string(values[len(values)-1]), `"`)
}

// constraints returns the limits of a value in words.
func (m markers) constraints() []string {
	var found []string
	found = append(found, limits(m.value("Minimum"), m.value("Maximum"), "")...)
	found = append(found, limits(m.value("MinLength"), m.value("MaxLength"), " characters")...)
	found = append(found, limits(m.value("MinItems"), m.value("MaxItems"), " items")...)
	found = append(found, limits("", m.value("MaxProperties"), " entries")...)
	found = append(found, limits(m.value("items:Minimum"), m.value("items:Maximum"), " each")...)
	found = append(found, limits(m.value("items:MinLength"), m.value("items:MaxLength"), " characters each")...)
	return found
}

func limits(least, most, unit string) []string {
	switch {
	case least != "" && most != "" && least != most:
		return []string{least + " to " + most + unit}
	case least != "" && most != "":
		return []string{least + unit}
	case least != "":
		return []string{"at least " + least + unit}
	case most != "":
		return []string{"at most " + most + unit}
	}
	return nil
}

// rules returns the messages of CEL rules, a pattern and the values of an enumeration. prefix selects those of items.
func (m markers) rules(prefix string) []string {
	var found []string
	for _, raw := range m["kubebuilder:validation:"+prefix+"XValidation"] {
		var rule struct{ Rule, Message, FieldPath string }
		if json.Unmarshal(raw, &rule) != nil {
			continue
		}
		text := paragraph(rule.Message)
		if text == "" {
			text = "`" + rule.Rule + "`"
		}
		if rule.FieldPath != "" {
			text = "`" + strings.TrimPrefix(rule.FieldPath, ".") + "` " + text
		}
		if prefix != "" {
			text = "each " + text
		}
		if !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	if pattern := m.value(prefix + "Pattern"); pattern != "" {
		var text string
		if json.Unmarshal([]byte(`"`+pattern+`"`), &text) == nil {
			found = append(found, "pattern `"+text+"`")
		}
	}
	var values []string
	for _, raw := range m["kubebuilder:validation:"+prefix+"Enum"] {
		if json.Unmarshal(raw, &values) == nil {
			found = append(found, "one of `"+strings.Join(values, "`, `")+"`")
		}
	}
	return found
}
