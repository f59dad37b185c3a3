// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"strings"
)

const markerWord = "cluster-api-provider-vcd"

// A Marker says whose a vApp or VM is. It is put in the description by the request that creates the object.
type Marker struct {
	Cluster string // id of the cluster; survives a move to another management cluster
	Machine string // UID of the machine; empty for what belongs to the cluster as a whole
}

// String returns the marker as it stands in a description.
func (m Marker) String() string {
	parts := []string{markerWord, "cluster=" + m.Cluster}
	if m.Machine != "" {
		parts = append(parts, "machine="+m.Machine)
	}
	return strings.Join(parts, " ")
}

// IsOf reports whether a description has this marker.
func (m Marker) IsOf(description string) bool {
	found, ok := ParseMarker(description)
	return ok && found == m
}

// ParseMarker finds the marker in a description; there may be text before and after it. It reports false when there is
// none, or two that differ: what claims two owners has none.
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

// valueAt returns what follows the prefix in a word, or the empty string.
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
