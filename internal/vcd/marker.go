// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"fmt"
	"regexp"
	"strings"
)

const markerWord = "cluster-api-provider-vcd"

// markerID is what ids in a marker look like: one word; a description may have text before and after it.
var markerID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]*$`)

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

// Valid returns why the marker cannot stand in a description, or nil. A valid one is read by [ParseMarker] as it was
// written; what is created with another one would have no owner. The error wraps [ErrInvalid].
func (m Marker) Valid() error {
	switch {
	case !markerID.MatchString(m.Cluster):
		return fmt.Errorf("%w: the id %q of the cluster must match %s", ErrInvalid, m.Cluster, markerID)
	case m.Machine != "" && !markerID.MatchString(m.Machine):
		return fmt.Errorf("%w: the id %q of the machine must match %s", ErrInvalid, m.Machine, markerID)
	}
	return nil
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
