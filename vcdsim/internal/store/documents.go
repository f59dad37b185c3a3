// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"time"
)

// An Object is an object of cloudapi that is stored as it was received, with the fields that the server adds.
type Object struct {
	OrgID   string // organization that owns it
	Parent  string // bare ID of its parent; empty if none
	Body    map[string]any
	Failed  bool                // the task that created it failed
	Since   time.Time           // time of the last change
	Version int                 // number of changes, for ETags
	Refs    map[string][]string // IDs of referenced objects, by name of the list
}

// ID returns the identifier in the form of the API.
func (d *Object) ID() string { return Text(d.Body, "id") }

// Objects are the objects of cloudapi by path, oldest first.
type Objects map[string][]*Object

// Find returns the object with an ID, or nil if it does not exist.
func (ds Objects) Find(path, id string) *Object {
	for _, d := range ds[path] {
		if d.ID() == id {
			return d
		}
	}
	return nil
}

// Add stores a new object.
func (ds Objects) Add(path, orgID string, body map[string]any) *Object {
	d := &Object{OrgID: orgID, Body: body, Version: 1, Refs: map[string][]string{}}
	ds[path] = append(ds[path], d)
	return d
}

// Remove removes an object.
func (ds Objects) Remove(path string, d *Object) {
	ds[path] = slices.DeleteFunc(slices.Clone(ds[path]), func(x *Object) bool { return x == d })
}

// On returns the objects of a path with a parent.
func (ds Objects) On(parent, path string) []*Object {
	return slices.DeleteFunc(slices.Clone(ds[path]), func(d *Object) bool { return d.Parent != parent })
}

// RefID returns the ID in a reference, or "" if there is none.
func RefID(body map[string]any, field string) string {
	ref, _ := body[field].(map[string]any)
	return Text(ref, "id")
}

// Text returns a text field of a document, or "" if it is missing or not a text.
func Text(body map[string]any, field string) string {
	s, _ := body[field].(string)
	return s
}
