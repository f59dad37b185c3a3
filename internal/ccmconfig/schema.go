// SPDX-License-Identifier: Apache-2.0

package ccmconfig

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ignored is the type of keys of predecessors that have no effect. Their tag "ignored" gives the reason.
type Ignored struct{}

// A Secret is a text that is never printed.
type Secret string

const redacted = "REDACTED"

// String redacts the secret when a value is printed.
func (Secret) String() string { return redacted }

// GoString redacts the secret when a value is printed in detail.
func (Secret) GoString() string { return redacted }

// MarshalText redacts the secret in JSON, for example in logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// A Key is a key of a schema that has a value.
type Key struct {
	Path  string // zones[].name is a key of each element of zones, zones.<name>.vdc of each named section
	Kind  string // kind of the value, for the documentation
	Field reflect.StructField
	Owner reflect.Type // struct that declares the field
}

// Keys returns all keys of a schema, in order.
func Keys(schema any) []Key {
	return keysOf("", reflect.TypeOf(schema).Elem())
}

func keysOf(path string, t reflect.Type) []Key {
	var all []Key
	for _, f := range fieldsOf(t) {
		at := join(path, nameOf(f))
		inner := elementOf(f.Type)
		if _, ok := scalarOf(inner); ok || inner == reflect.TypeFor[Ignored]() {
			owner := t
			if len(f.Index) > 1 {
				owner = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
			}
			all = append(all, Key{Path: at, Kind: kindOf(f), Field: f, Owner: owner})
			continue
		}
		switch f.Type.Kind() {
		case reflect.Slice:
			at += "[]"
		case reflect.Map:
			at += ".<name>"
			inner = inner.Elem()
		default:
		}
		all = append(all, keysOf(at, inner)...)
	}
	return all
}

// fieldsOf returns the fields of a section, including those of embedded structs.
func fieldsOf(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Anonymous })
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// elementOf returns the element type of a list or of named sections, or the type that a pointer points to.
func elementOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		return t.Elem()
	}
	return t
}

// kindOf describes the value of a key.
func kindOf(f reflect.StructField) string {
	if kind := f.Tag.Get("kind"); kind != "" {
		return kind
	}
	known, ok := scalarOf(elementOf(f.Type))
	switch {
	case !ok:
		return "any"
	case f.Type.Kind() == reflect.Slice:
		return "list of " + known.kind + "s"
	}
	return known.kind
}

// A scalar parses the text of a single value.
type scalar struct {
	kind  string
	parse func(string) (any, error)
}

var scalars = map[reflect.Type]scalar{
	reflect.TypeFor[string]():          {"text", func(s string) (any, error) { return strings.TrimSpace(s), nil }},
	reflect.TypeFor[bool]():            parsed("boolean", "true or false", parseBoolean),
	reflect.TypeFor[int]():             parsed("integer", "a whole number", strconv.Atoi),
	reflect.TypeFor[float64]():         parsed("number", "a number", parseFloat),
	reflect.TypeFor[metav1.Duration](): parsed("duration", "a duration such as 30s", parseDuration),
	reflect.TypeFor[netip.Addr]():      parsed("address", "an address such as 192.168.8.2", parseAddr),
	reflect.TypeFor[netip.Prefix]():    parsed("CIDR", "a CIDR such as 192.168.8.0/24", parsePrefix),
}

// scalarOf returns the scalar of a type. Types based on string are parsed as text.
func scalarOf(t reflect.Type) (scalar, bool) {
	known, ok := scalars[t]
	if !ok && t.Kind() == reflect.String {
		return scalars[reflect.TypeFor[string]()], true
	}
	return known, ok
}

func parsed[T any](kind, want string, parse func(string) (T, error)) scalar {
	return scalar{
		kind,
		func(s string) (any, error) {
			value, err := parse(s)
			if err != nil {
				return nil, fmt.Errorf("is %q, but must be %s", s, want)
			}
			return value, nil
		},
	}
}

// parseBoolean accepts the words of YAML 1.1 and of INI files, as the parsers of predecessors did.
func parseBoolean(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, strconv.ErrSyntax
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

func parseDuration(s string) (metav1.Duration, error) {
	d, err := time.ParseDuration(s)
	return metav1.Duration{Duration: d}, err
}

// parseAddr rejects addresses with a zone.
func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err == nil && a.Zone() != "" {
		err = strconv.ErrSyntax
	}
	return a, err
}

func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
