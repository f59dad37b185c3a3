// SPDX-License-Identifier: Apache-2.0

// Package metadata compares the desired metadata of a VM or vApp with the metadata that the provider wrote. It is pure.
package metadata

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

var types = map[infrav1.MetadataType]vcd.MetadataType{
	"":                       vcd.MetadataString,
	infrav1.MetadataString:   vcd.MetadataString,
	infrav1.MetadataNumber:   vcd.MetadataNumber,
	infrav1.MetadataBoolean:  vcd.MetadataBoolean,
	infrav1.MetadataDateTime: vcd.MetadataDateTime,
}

var accesses = map[infrav1.MetadataAccess]vcd.MetadataAccess{
	"":                        vcd.MetadataReadWrite,
	infrav1.MetadataReadWrite: vcd.MetadataReadWrite,
	infrav1.MetadataReadOnly:  vcd.MetadataReadOnly,
	infrav1.MetadataPrivate:   vcd.MetadataPrivate,
}

// Desired converts the metadata in a spec to entries of VCD.
func Desired(spec []infrav1.MetadataEntry) []vcd.MetadataEntry {
	var desired []vcd.MetadataEntry
	for _, entry := range spec {
		desired = append(desired, vcd.MetadataEntry{
			Key:    entry.Key,
			Type:   types[entry.Type],
			Access: accesses[entry.Access],
			Value:  ptr.Deref(entry.Value, ""),
		})
	}
	return desired
}

// A Record contains the entries, by key, that the provider wrote to an object in VCD or is about to write. Other entries
// belong to other owners.
type Record map[string]Written

// Written is an entry that was written, or is about to be written.
type Written struct {
	Type   vcd.MetadataType // empty: about to be written, or the result of the write is unknown
	Access vcd.MetadataAccess
	Value  string
}

// RecordOf converts recorded state to a Record.
func RecordOf(recorded []infrav1.RecordedMetadata) Record {
	record := Record{}
	for _, entry := range recorded {
		written := Written{Access: accesses[entry.Access], Value: entry.Value}
		if entry.Type != "" {
			written.Type = types[entry.Type]
		}
		record[entry.Key] = written
	}
	return record
}

// Entries returns the recorded state that [RecordOf] converts, sorted by key. It returns nil for an empty record.
func (r Record) Entries() []infrav1.RecordedMetadata {
	var entries []infrav1.RecordedMetadata
	for _, key := range slices.Sorted(maps.Keys(r)) {
		entries = append(entries, infrav1.RecordedMetadata{
			Key:    key,
			Access: cmp.Or(keyOf(accesses, r[key].Access), infrav1.MetadataPrivate),
			Type:   typeOf(r[key].Type),
			Value:  r[key].Value,
		})
	}
	return entries
}

// typeOf returns the API type for a type in VCD, or the empty string for the empty type. Unknown types become String.
func typeOf(t vcd.MetadataType) infrav1.MetadataType {
	if t == "" {
		return ""
	}
	return cmp.Or(keyOf(types, t), infrav1.MetadataString)
}

// keyOf returns the API name of a value in VCD, or the empty string if the value has no name.
func keyOf[K ~string, V comparable](names map[K]V, value V) K {
	for name, v := range names {
		if v == value && name != "" {
			return name
		}
	}
	return ""
}

// Missing returns the desired entries that were not written, or were written differently.
func (r Record) Missing(desired []vcd.MetadataEntry) []vcd.MetadataEntry {
	var missing []vcd.MetadataEntry
	for _, entry := range desired {
		if was, ok := r[entry.Key]; !ok || !was.is(entry) {
			missing = append(missing, entry)
		}
	}
	return missing
}

// is reports whether an entry was written as desired. It compares times as instants, because VCD may change their
// format.
func (w Written) is(desired vcd.MetadataEntry) bool {
	if w.Type != desired.Type || w.Access != desired.Access {
		return false
	}
	if w.Type != vcd.MetadataDateTime {
		return w.Value == desired.Value
	}
	was, err1 := time.Parse(time.RFC3339, w.Value)
	is, err2 := time.Parse(time.RFC3339, desired.Value)
	return err1 == nil && err2 == nil && was.Equal(is)
}

// Obsolete returns the keys that were written and are no longer desired, sorted.
func (r Record) Obsolete(desired []vcd.MetadataEntry) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r)), func(key string) bool {
		return slices.ContainsFunc(desired, func(entry vcd.MetadataEntry) bool { return entry.Key == key })
	})
}

// Ask returns a copy of the record in which the given entries are about to be written. The caller saves it before the
// request.
func (r Record) Ask(entries []vcd.MetadataEntry) Record {
	next := maps.Clone(r)
	for _, entry := range entries {
		next[entry.Key] = Written{Access: entry.Access}
	}
	return next
}

// Open reports whether the result of the write of any entry is unknown.
func (r Record) Open() bool {
	for _, written := range r {
		if written.Type == "" {
			return true
		}
	}
	return false
}

// Seen returns the record with the current values in VCD. It omits entries that VCD does not return in their domain.
func (r Record) Seen(now []vcd.MetadataEntry) Record {
	next := Record{}
	for _, entry := range now {
		if was, ok := r[entry.Key]; ok && was.sameDomain(entry) {
			next[entry.Key] = Written{
				Type:   entry.Type,
				Access: entry.Access,
				Value:  entry.Value,
			}
		}
	}
	return next
}

// sameDomain reports whether an entry in VCD is in the domain to which the provider wrote its entry.
func (w Written) sameDomain(entry vcd.MetadataEntry) bool {
	return (w.Access == vcd.MetadataReadWrite) == (entry.Access == vcd.MetadataReadWrite)
}
