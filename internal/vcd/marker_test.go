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
		{"a machine's marker", machine.String(), machine, true},
		{"a cluster's marker", Marker{Cluster: "7c1"}.String(), Marker{Cluster: "7c1"}, true},
		{"people write around it", "Do not touch!\n" + machine.String() + " (asked Bob)", machine, true},
		{"the same marker twice is valid", machine.String() + "\n" + machine.String(), machine, true},
		{"markers of two owners are not", machine.String() + "\n" + Marker{Cluster: "other"}.String(), Marker{}, false},
		{
			"two owners in one line are invalid",
			machine.String() + " " + Marker{Cluster: "other"}.String(),
			Marker{},
			false,
		},
		{"none", "a VM", Marker{}, false},
		{"a longer word is not a marker", "not-cluster-api-provider-vcd cluster=7c1", Marker{}, false},
		{"a marker needs a cluster", "cluster-api-provider-vcd machine=9d2", Marker{}, false},
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
