// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
)

// An Object is a JSON object as VCD wrote it. Callers change some of its fields and send it back with all others
// unchanged.
type Object map[string]json.RawMessage

// Set sets a field and reports whether its value has changed.
func (o Object) Set(field string, value any) bool {
	raw, err := json.Marshal(value)
	if err != nil || SameJSON(o[field], raw) {
		return false
	}
	o[field] = raw
	return true
}

// SameJSON reports whether two values are equal, independently of their formatting. Missing, null and empty values are
// equal.
func SameJSON(a, b json.RawMessage) bool {
	x := canonical(a)
	y := canonical(b)
	return bytes.Equal(x, y)
}

func canonical(raw json.RawMessage) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	out, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	switch string(out) {
	case "null", `""`, "[]", "{}":
		return nil
	}
	return out
}

// Text returns the value of a text field, or the empty string.
func (o Object) Text(field string) string {
	var text string
	_ = json.Unmarshal(o[field], &text) // empty unless the field is a text
	return text
}

// A Ref is a reference in the JSON API.
type Ref struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// Key identifies the referenced object in a list.
func (r Ref) Key() string { return r.ID }

// RefTo returns a reference to an object by its URN, or nil, which means no reference, if urn is empty.
func RefTo(urn string) *Ref {
	if urn == "" {
		return nil
	}
	return &Ref{ID: urn}
}

// SetIf sets a field unless value is nil. It reports whether the field has changed.
func SetIf[T any](o Object, field string, value *T) bool { return value != nil && o.Set(field, *value) }

// SetBy calls set unless value is nil, and returns its result.
func SetBy[T any](o Object, value *T, set func(Object, T) bool) bool {
	return value != nil && set(o, *value)
}

// Either reports whether any change had an effect. Its arguments are evaluated first, so all changes are made.
func Either(changes ...bool) bool { return slices.Contains(changes, true) }

// SetRef sets a reference unless urn is nil. An empty URN removes the reference.
func SetRef(o Object, field string, urn *string) bool {
	if urn == nil {
		return false
	}
	var now Ref
	_ = json.Unmarshal(o[field], &now) // may be null
	return now.ID != *urn && o.Set(field, RefTo(*urn))
}

// SetAddress sets an address unless address is nil. The zero address removes it.
func SetAddress(o Object, field string, address *netip.Addr) bool {
	switch {
	case address == nil, Address(o.Text(field)) == *address:
		return false
	case !address.IsValid():
		return o.Set(field, nil)
	}
	return o.Set(field, address.String())
}
