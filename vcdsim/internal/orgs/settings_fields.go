// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A fieldKind is the type of content of an element in an organization's settings.
type fieldKind int

// Kinds of fields.
const (
	fieldText   fieldKind = iota
	fieldFlag             // always shown
	fieldNumber           // shown unless empty
	fieldTexts            // any number of elements
	fieldGroup            // an element with fields
	fieldGroups           // any number of groups
)

// A field is an element of an organization's settings. The documents in the store hold all values as strings.
type field struct {
	name     string
	kind     fieldKind
	fields   []field // of a group
	since    string  // first API version that has the field; empty for all
	hidden   bool    // a secret, which is never shown
	computed bool    // the value from clients is ignored
	required bool
}

// readFields reads the fields of an element that a client sent.
func readFields(tree *xmltree.Node, fields []field) (map[string]any, error) {
	out := map[string]any{}
	for _, f := range fields {
		if f.required && tree.At(f.name) == nil {
			return nil, store.BadRequest("The element %s is missing.", f.name)
		}
		if f.computed || tree.At(f.name) == nil {
			continue
		}
		value, err := readField(tree, f)
		if err != nil {
			return nil, err
		}
		out[f.name] = value
	}
	return out, nil
}

func readField(tree *xmltree.Node, f field) (any, error) {
	switch f.kind {
	case fieldFlag:
		return strconv.FormatBool(tree.Bool(f.name)), nil
	case fieldNumber:
		n, err := strconv.Atoi(tree.Str(f.name))
		if err != nil || n < 0 {
			return nil, store.BadRequest("The value %q of %s is not a number.", tree.Str(f.name), f.name)
		}
		return strconv.Itoa(n), nil
	case fieldTexts:
		list := []any{}
		for _, x := range tree.All(f.name) {
			list = append(list, x.Text)
		}
		return list, nil
	case fieldGroup:
		return readFields(tree.At(f.name), f.fields)
	case fieldGroups:
		list := []any{}
		for _, x := range tree.All(f.name) {
			group, err := readFields(x, f.fields)
			if err != nil {
				return nil, err
			}
			list = append(list, group)
		}
		return list, nil
	case fieldText:
	}
	return tree.Str(f.name), nil
}

// addFields adds the fields of a document to an element, as the API version shows them.
func addFields(n *xmltree.Node, version string, fields []field, body map[string]any) {
	for _, f := range fields {
		if f.hidden || version < f.since {
			continue
		}
		switch f.kind {
		case fieldText, fieldNumber:
			if value := store.Text(body, f.name); value != "" || f.required {
				n.Add(xmltree.T(f.name, value))
			}
		case fieldFlag:
			n.Add(xmltree.T(f.name, store.Text(body, f.name) == "true"))
		case fieldTexts:
			for _, x := range listOf(body, f.name) {
				n.Add(xmltree.T(f.name, x))
			}
		case fieldGroup:
			if group, ok := body[f.name].(map[string]any); ok {
				n.Add(fieldNode(f, version, group))
			}
		case fieldGroups:
			for _, x := range listOf(body, f.name) {
				group, _ := x.(map[string]any)
				n.Add(fieldNode(f, version, group))
			}
		}
	}
}

func fieldNode(f field, version string, body map[string]any) *xmltree.Node {
	n := xmltree.New(f.name)
	addFields(n, version, f.fields, body)
	return n
}

func listOf(body map[string]any, name string) []any {
	list, _ := body[name].([]any)
	return list
}

// settingsOf returns the document with an organization's settings at a path, or nil if none exists.
func settingsOf(st *store.Store, org *store.Org, path string) *store.Object {
	for _, d := range st.Documents[path] {
		if d.OrgID == org.ID {
			return d
		}
	}
	return nil
}

// settingsBody returns an organization's settings at a path. They are empty if none were set.
func settingsBody(st *store.Store, org *store.Org, path string) map[string]any {
	if d := settingsOf(st, org, path); d != nil {
		return d.Body
	}
	return map[string]any{}
}

// storeSettings replaces an organization's settings at a path.
func storeSettings(st *store.Store, org *store.Org, path string, body map[string]any) {
	if d := settingsOf(st, org, path); d != nil {
		d.Body = body
		d.Version++
		return
	}
	st.Documents.Add(path, org.ID, body)
}
