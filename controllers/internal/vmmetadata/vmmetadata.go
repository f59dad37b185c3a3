// SPDX-License-Identifier: Apache-2.0

// Package vmmetadata compares the metadata that a VM should have with those that were written. It is pure.
package vmmetadata

import (
	"encoding/json"
	"maps"
	"slices"
)

// A Record is what was written to a VM, or is about to be: what is not in it is another's.
type Record map[string]string

// asked is the value of what is about to be written. It is no text that VCD takes.
const asked = "\x00"

// Parse reads a record from an annotation; nothing usable is an empty one.
func Parse(annotation string) Record {
	record := Record{}
	if json.Unmarshal([]byte(annotation), &record) != nil || record == nil {
		return Record{}
	}
	return record
}

// String writes what [Parse] reads; empty if nothing was written.
func (r Record) String() string {
	if len(r) == 0 {
		return ""
	}
	text, err := json.Marshal(r)
	if err != nil {
		return "" // texts only
	}
	return string(text)
}

// Missing returns the wished values that were not written.
func (r Record) Missing(wished map[string]string) map[string]string {
	missing := map[string]string{}
	for key, value := range wished {
		if was, ok := r[key]; !ok || was != value {
			missing[key] = value
		}
	}
	return missing
}

// Obsolete returns the keys that were written and are not wished any more, sorted.
func (r Record) Obsolete(wished map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r)), func(key string) bool {
		_, ok := wished[key]
		return ok
	})
}

// Ask returns the record with values that are about to be written, for which it is stored before.
func (r Record) Ask(values map[string]string) Record {
	next := maps.Clone(r)
	for key := range values {
		next[key] = asked
	}
	return next
}

// Open reports whether it is not known what became of something that was about to be written.
func (r Record) Open() bool {
	return slices.Contains(slices.Collect(maps.Values(r)), asked)
}

// Seen returns the record as VCD shows the metadata now.
func (r Record) Seen(now map[string]string) Record {
	next := Record{}
	for key := range r {
		if value, ok := now[key]; ok {
			next[key] = value
		}
	}
	return next
}
