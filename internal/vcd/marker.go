// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"strings"
)

const markerWord = "cluster-api-provider-vcd"

// A Marker identifies the owner of a vApp or VM. It is part of the description in the request that creates the object.
type Marker struct {
	Cluster string // ID of the cluster; survives a move to another management cluster
	Machine string // UID of the machine; empty for objects of the whole cluster
}

// String returns the marker in the form that descriptions contain.
func (m Marker) String() string {
	parts := []string{markerWord, "cluster=" + m.Cluster}
	if m.Machine != "" {
		parts = append(parts, "machine="+m.Machine)
	}
	return strings.Join(parts, " ")
}

// IsOf reports whether a description contains this marker.
func (m Marker) IsOf(description string) bool {
	found, ok := ParseMarker(description)
	return ok && found == m
}

// ParseMarker finds the marker in a description, which may contain other text. It returns false if there is no marker,
// or if there are two different ones: an object that claims two owners has none.
func ParseMarker(description string) (Marker, bool) {
	var found Marker
	words := strings.Fields(description)
	for i, word := range words {
		if word != markerWord {
			continue
		}
		var m Marker
		m.Cluster = valueAt(words, i+1, "cluster=")
		m.Machine = valueAt(words, i+2, "machine=")
		switch {
		case m.Cluster == "":
			continue
		case found != Marker{} && found != m:
			return Marker{}, false
		}
		found = m
	}
	return found, found != Marker{}
}

// valueAt returns the part of a word after the prefix, or the empty string.
func valueAt(words []string, i int, prefix string) string {
	if i >= len(words) {
		return ""
	}
	value, ok := strings.CutPrefix(words[i], prefix)
	if !ok {
		return ""
	}
	return value
}
