// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
)

// An object is a JSON object as VCD wrote it, to change fields of it and give it back with all others as they came.
type object map[string]json.RawMessage

// set gives a field a value and reports whether it differs from the one before.
func (o object) set(field string, value any) bool {
	raw, err := json.Marshal(value)
	if err != nil || sameJSON(o[field], raw) {
		return false
	}
	o[field] = raw
	return true
}

// sameJSON compares values, not how they are written. Nothing, null, and what is empty are the same.
func sameJSON(a, b json.RawMessage) bool {
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

// textOf is a field that holds text.
func (o object) textOf(field string) string {
	var text string
	_ = json.Unmarshal(o[field], &text) // what is no text is none
	return text
}

// A wireRef is how the JSON API writes a reference.
type wireRef struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

func (r wireRef) Key() string { return r.ID }

// refTo is a reference to an object by its URN; nil, which stands for none, if there is no URN.
func refTo(urn string) *wireRef {
	if urn == "" {
		return nil
	}
	return &wireRef{ID: urn}
}

// setIf sets a field unless there is nothing to set.
func setIf[T any](o object, field string, value *T) bool { return value != nil && o.set(field, *value) }

// setBy sets something unless there is nothing to set.
func setBy[T any](o object, value *T, set func(object, T) bool) bool {
	return value != nil && set(o, *value)
}

// either reports whether any of some changes, which all are made, changed something.
func either(changes ...bool) bool { return slices.Contains(changes, true) }

// setRef sets a reference; an empty URN removes it.
func setRef(o object, field string, urn *string) bool {
	if urn == nil {
		return false
	}
	var now wireRef
	_ = json.Unmarshal(o[field], &now) // may be null
	return now.ID != *urn && o.set(field, refTo(*urn))
}

func setAddress(o object, field string, address *netip.Addr) bool {
	switch {
	case address == nil, parseAddr(o.textOf(field)) == *address:
		return false
	case !address.IsValid():
		return o.set(field, nil)
	}
	return o.set(field, address.String())
}
