// SPDX-License-Identifier: Apache-2.0

// Package rde computes the new content of a cluster's runtime defined entity from the old content and a change. Unknown
// members stay byte for byte. The manager writes the section status.capvcd, the cloud controller manager the section
// status.cpi.
package rde

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errNoObject means that a value that must have members is not a JSON object.
var errNoObject = errors.New("is not a JSON object")

// edit returns an object in which change has replaced the value of one member. Change gets the old value; nil if the
// member is missing. Everything else stays byte for byte, and so does the member if change returns its old value.
func edit(object []byte, name string, change func(old json.RawMessage) (json.RawMessage, error)) ([]byte, error) {
	if trimmed := bytes.TrimSpace(object); len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")) {
		object = []byte("{}")
	}
	at, err := find(object, name)
	if err != nil {
		return nil, err
	}
	var old json.RawMessage
	if at.found {
		old = object[at.from:at.to]
	}
	value, err := change(old)
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", name, err)
	}
	if at.found {
		if bytes.Equal(value, old) {
			return object, nil
		}
		return splice(object, at.from, at.to, value), nil
	}
	if value == nil {
		return object, nil
	}
	return insert(object, at, name, value)
}

// insert adds a member to an object.
func insert(object []byte, at position, name string, value json.RawMessage) ([]byte, error) {
	key, err := json.Marshal(name)
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", name, err)
	}
	member := append(append(key, ':'), value...)
	if !at.empty {
		member = append([]byte{','}, member...)
	}
	return splice(object, at.from, at.from, member), nil
}

func splice(in []byte, from, to int, insert []byte) []byte {
	out := make([]byte, 0, len(in)+len(insert))
	out = append(out, in[:from]...)
	out = append(out, insert...)
	return append(out, in[to:]...)
}

// A position is the range of a member's value in an object, or the place for a new member.
type position struct {
	from, to     int
	found, empty bool
}

func find(object []byte, name string) (position, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	start, err := d.Token()
	if err != nil {
		return position{}, fmt.Errorf("reading JSON: %w", err)
	}
	if start != json.Delim('{') {
		return position{}, errNoObject
	}
	at := position{empty: true}
	at.from = int(d.InputOffset())
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return position{}, fmt.Errorf("reading JSON: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return position{}, fmt.Errorf("reading JSON: %w", err)
		}
		at.empty = false
		at.from = int(d.InputOffset())
		if key == name {
			at.found = true
			at.to = at.from
			at.from -= len(value)
			return at, nil
		}
	}
	return at, nil
}

// editPath is [edit] for a member of nested objects.
func editPath(object []byte, path []string, change func(old json.RawMessage) (json.RawMessage, error)) ([]byte, error) {
	if len(path) == 1 {
		return edit(object, path[0], change)
	}
	return edit(object, path[0],
		func(old json.RawMessage) (json.RawMessage, error) { return editPath(old, path[1:], change) })
}

// editList returns a change of a list. Change gets the elements of the list. Elements that it returns unchanged stay
// byte for byte.
func editList(change func(elements []json.RawMessage) ([]json.RawMessage, error)) func(json.RawMessage) (json.RawMessage, error) {
	return func(old json.RawMessage) (json.RawMessage, error) {
		var elements []json.RawMessage
		if old != nil {
			if err := json.Unmarshal(old, &elements); err != nil {
				return nil, fmt.Errorf("reading a list: %w", err)
			}
		}
		changed, err := change(elements)
		if err != nil || sameList(elements, changed) && (old != nil || len(changed) == 0) {
			return old, err
		}
		parts := make([][]byte, 0, len(changed))
		for _, e := range changed {
			parts = append(parts, e)
		}
		out := append([]byte{'['}, bytes.Join(parts, []byte{','})...)
		return append(out, ']'), nil
	}
}

func sameList(a, b []json.RawMessage) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
