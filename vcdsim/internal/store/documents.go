// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"time"
)

// An Object is an object of cloudapi that is stored as it was sent, with what the server adds to it.
type Object struct {
	OrgID   string // whose it is
	Parent  string // bare id of what it belongs to, if to anything
	Body    map[string]any
	Failed  bool                // the task that made it failed
	Since   time.Time           // when it last changed
	Version int                 // counts the changes, for ETags
	Refs    map[string][]string // ids of what it refers to, by the name of the list
}

// ID is the identifier as the API shows it.
func (d *Object) ID() string { return Text(d.Body, "id") }

// Objects are the objects of cloudapi by path, oldest first.
type Objects map[string][]*Object

// Find finds what a task works on.
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

// Remove drops an object.
func (ds Objects) Remove(path string, d *Object) {
	ds[path] = slices.DeleteFunc(slices.Clone(ds[path]), func(x *Object) bool { return x == d })
}

// On are the documents of a path that belong to something.
func (ds Objects) On(parent, path string) []*Object {
	return slices.DeleteFunc(slices.Clone(ds[path]), func(d *Object) bool { return d.Parent != parent })
}

// RefID is the id in a reference, empty if there is none.
func RefID(body map[string]any, field string) string {
	ref, _ := body[field].(map[string]any)
	return Text(ref, "id")
}

// Text is a field of a document as text, empty if it is none.
func Text(body map[string]any, field string) string {
	s, _ := body[field].(string)
	return s
}
