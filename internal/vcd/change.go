package vcd

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
)

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

// set gives a field a value, and says whether that is another one than before.
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
	x, y := canonical(a), canonical(b)
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

// change reads an object, lets edit change it and writes it back. If edit changes nothing, nothing is written, and the task
// that is returned has succeeded already; but what VCD has given up to realize is written in any case, so that it tries again.
func (c *client) change(ctx context.Context, path string, edit func(object) (bool, error)) (Task, error) {
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

func (r *wireRef) ref() Ref {
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
