// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
)

// An Object is a JSON object as VCD wrote it, to change fields of it and give it back with all others as they came.
type Object map[string]json.RawMessage

// Set gives a field a value and reports whether it differs from the one before.
func (o Object) Set(field string, value any) bool {
	raw, err := json.Marshal(value)
	if err != nil || SameJSON(o[field], raw) {
		return false
	}
	o[field] = raw
	return true
}

// SameJSON compares values, not how they are written. Nothing, null, and what is empty are the same.
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

// Text is a field that holds text.
func (o Object) Text(field string) string {
	var text string
	_ = json.Unmarshal(o[field], &text) // what is no text is none
	return text
}

// A Ref is how the JSON API writes a reference.
type Ref struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// Key identifies what is referred to in a list.
func (r Ref) Key() string { return r.ID }

// RefTo is a reference to an object by its URN; nil, which stands for none, if there is no URN.
func RefTo(urn string) *Ref {
	if urn == "" {
		return nil
	}
	return &Ref{ID: urn}
}

// SetIf sets a field unless there is nothing to set.
func SetIf[T any](o Object, field string, value *T) bool { return value != nil && o.Set(field, *value) }

// SetBy sets something unless there is nothing to set.
func SetBy[T any](o Object, value *T, set func(Object, T) bool) bool {
	return value != nil && set(o, *value)
}

// Either reports whether any of some changes, which all are made, changed something.
func Either(changes ...bool) bool { return slices.Contains(changes, true) }

// SetRef sets a reference; an empty URN removes it.
func SetRef(o Object, field string, urn *string) bool {
	if urn == nil {
		return false
	}
	var now Ref
	_ = json.Unmarshal(o[field], &now) // may be null
	return now.ID != *urn && o.Set(field, RefTo(*urn))
}

// SetAddress sets an address unless there is nothing to set; the zero address removes it.
func SetAddress(o Object, field string, address *netip.Addr) bool {
	switch {
	case address == nil, Address(o.Text(field)) == *address:
		return false
	case !address.IsValid():
		return o.Set(field, nil)
	}
	return o.Set(field, address.String())
}
