// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseMarker(t *testing.T) {
	machine := Marker{Cluster: "7c1", Machine: "9d2"}
	tests := []struct {
		name, description string
		want              Marker
		found             bool
	}{
		{name: "a machine's marker", description: machine.String(), want: machine, found: true},
		{name: "a cluster's marker", description: Marker{Cluster: "7c1"}.String(), want: Marker{Cluster: "7c1"}, found: true},
		{name: "people write around it", description: "Do not touch!\n" + machine.String() + " (asked Bob)", want: machine, found: true},
		{name: "the same marker twice is valid", description: machine.String() + "\n" + machine.String(), want: machine, found: true},
		{name: "markers of two owners are not", description: machine.String() + "\n" + Marker{Cluster: "other"}.String(), want: Marker{}},
		{
			name:        "two owners in one line are invalid",
			description: machine.String() + " " + Marker{Cluster: "other"}.String(),
			want:        Marker{},
		},
		{name: "none", description: "a VM", want: Marker{}},
		{name: "a longer word is not a marker", description: "not-cluster-api-provider-vcd cluster=7c1", want: Marker{}},
		{name: "a marker needs a cluster", description: "cluster-api-provider-vcd machine=9d2", want: Marker{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got, found := ParseMarker(tt.description)

			g.Expect(found).To(Equal(tt.found))
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestEveryMarkerSurvivesARoundTrip(t *testing.T) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	const all = letters + ":._-"
	for i := range 100_000 {
		m := Marker{Cluster: someWord(i, letters, all)}
		if i%3 > 0 {
			m.Machine = someWord(i*31, letters, all)
		}
		found, ok := ParseMarker("a note\n" + m.String() + "\nanother")
		if !ok || found != m {
			t.Fatalf("%q reads as %+v, %t", m, found, ok)
		}
	}
}

// someWord generates a word from a number. Every character occurs at every position.
func someWord(n int, first, rest string) string {
	word := []byte{first[n%len(first)]}
	for n /= len(first); n > 0; n /= len(rest) {
		word = append(word, rest[n%len(rest)])
	}
	return string(word)
}
