// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
)

// read reads an object of the JSON API and converts it.
func read[W, T any](ctx context.Context, c *client, what, id, path string, convert func(*W) T) (T, error) {
	var doc W
	if err := c.getJSON(ctx, path, "", &doc); err != nil {
		var none T
		return none, wrapped(err, "reading "+what, id)
	}
	return convert(&doc), nil
}

// create starts creating an object of the JSON API.
func (c *client) create(ctx context.Context, what, name, path string, body any) (Task, error) {
	task, err := c.startJSON(ctx, http.MethodPost, path, body)
	return task, wrapped(err, "creating "+what, name)
}

// remove starts deleting an object of the JSON API.
func (c *client) remove(ctx context.Context, what, id, path string) (Task, error) {
	task, err := c.startJSON(ctx, http.MethodDelete, path, nil)
	return task, wrapped(err, "deleting "+what, id)
}

// An object is a JSON object as VCD wrote it, to change fields of it and give it back with all others as they came.
type object map[string]json.RawMessage

func (c *client) object(ctx context.Context, path string) (object, error) {
	var o object
	if err := c.getJSON(ctx, path, "", &o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errNotJSON
	}
	return o, nil
}

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

// change reads an object, lets edit change it and starts writing it back. If edit changes nothing, nothing is written,
// and the task has succeeded; but an object that VCD failed to realize is written in any case, so that VCD tries again.
func (c *client) change(ctx context.Context, what, id, path string, edit func(object) (bool, error)) (Task, error) {
	task, err := c.edit(ctx, path, edit)
	return task, wrapped(err, "changing "+what, id)
}

func (c *client) edit(ctx context.Context, path string, edit func(object) (bool, error)) (Task, error) {
	o, err := c.object(ctx, path)
	if err != nil {
		return Task{}, err
	}
	changed, err := edit(o)
	if err != nil || !changed && Realization(o.textOf("status")) != RealizationFailed {
		return Task{State: TaskSucceeded, Owner: o.textOf("id")}, err
	}
	task, err := c.startJSON(ctx, http.MethodPut, path, o)
	if task.Owner == "" {
		task.Owner = o.textOf("id")
	}
	return task, err
}

// A wireRef is how the JSON API writes a reference.
type wireRef struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

func (r wireRef) id() string { return r.ID }

// refOf returns a reference, empty if there is none.
func refOf(r *wireRef) Ref {
	if r == nil {
		return Ref{}
	}
	return Ref{ID: r.ID, Name: r.Name}
}

// refTo is a reference to an object by its URN; nil, which stands for none, if there is no URN.
func refTo(urn string) *wireRef {
	if urn == "" {
		return nil
	}
	return &wireRef{ID: urn}
}

// A wireObject is what the JSON API writes of most objects.
type wireObject struct {
	wireRef

	Description string      `json:"description"`
	Status      Realization `json:"status"`
}

// setIf sets a field unless there is nothing to set.
func setIf[T any](o object, field string, value *T) bool { return value != nil && o.set(field, *value) }

// setBy sets something unless there is nothing to set.
func setBy[T any](value *T, set func(T) bool) bool { return value != nil && set(*value) }

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
