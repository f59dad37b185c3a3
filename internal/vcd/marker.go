package vcd

import (
	"regexp"
	"strings"
)

const markerWord = "cluster-api-provider-vcd"

// markerPattern finds a marker anywhere in a description: people may write before and after it.
var markerPattern = regexp.MustCompile(`(?:^|\s)` + markerWord + ` cluster=([^\s=]+)(?: machine=([^\s=]+))?(?:\s|$)`)

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

// ParseMarker finds the marker in a description. It reports false when there is none, or more than one that
// differ: what claims two owners has none.
func ParseMarker(description string) (Marker, bool) {
	var found Marker
	// Neighbouring markers share the blank between them, which one regular expression cannot match twice.
	for _, part := range strings.SplitAfter(description, "\n") {
		for _, match := range markerPattern.FindAllStringSubmatch(part, -1) {
			m := Marker{Cluster: match[1], Machine: match[2]}
			if found != (Marker{}) && found != m {
				return Marker{}, false
			}
			found = m
		}
	}
	return found, found != Marker{}
}
