// SPDX-License-Identifier: Apache-2.0

package gone

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// missingFor returns VMs of a cluster that have been missing for some minutes, numbered from 0. All are held back.
func missingFor(cluster string, minutes ...int) []Missing {
	var all []Missing
	for i, m := range minutes {
		all = append(all, Missing{
			Cluster: cluster,
			Name:    fmt.Sprint(i),
			Since:   noon.Add(-time.Duration(m) * time.Minute),
			Held:    noon.Add(-releaseGap),
		})
	}
	return all
}

// undecided marks some VMs as machines that have not been ready for release for some minutes.
func undecided(minutes int, all []Missing, which ...int) []Missing {
	for _, i := range which {
		all[i].Held = noon.Add(-time.Duration(minutes) * time.Minute)
	}
	return all
}

// goneFor marks some VMs as declared gone some minutes ago.
func goneFor(minutes int, all []Missing, which ...int) []Missing {
	for _, i := range which {
		all[i].Gone = noon.Add(-time.Duration(minutes) * time.Minute)
	}
	return all
}

func TestHeldBack(t *testing.T) {
	tests := []struct {
		name    string
		n       int
		missing []Missing
		me      int
		last    time.Time
		left    time.Duration
	}{
		{"one of one is not held back", 1, missingFor("a", 1), 0, time.Time{}, 0},
		{"one of two is not held back", 2, missingFor("a", 1), 0, time.Time{}, 0},
		{"two of two are held back", 2, missingFor("a", 1, 1), 0, time.Time{}, 9 * time.Minute},
		{"a third of nine is not", 9, missingFor("a", 1, 1, 1), 0, time.Time{}, 0},
		{"more than a third is held back", 9, missingFor("a", 1, 2, 2, 2), 0, time.Time{}, 9 * time.Minute},
		{"after ten minutes the first one is released", 4, missingFor("a", 11, 11, 11), 0, time.Time{}, 0},
		{"and the others wait until it is deleted", 4, missingFor("a", 11, 11, 11), 1, time.Time{}, releaseGap},
		{"the VM that has been missing longest is first", 4, missingFor("a", 11, 12, 11), 1, time.Time{}, 0},
		{
			"the next one waits for a minute after the last",
			4,
			goneFor(0, missingFor("a", 11, 11, 11), 0),
			1,
			time.Time{},
			time.Minute,
		},
		{"and is then released", 4, goneFor(1, missingFor("a", 12, 12, 12), 0), 1, time.Time{}, 0},
		{
			"a VM that cannot be released does not block others",
			4,
			undecided(60, missingFor("a", 12, 11, 11), 0),
			1,
			time.Time{},
			0,
		},
		{
			"the gap remains when one is skipped",
			4,
			undecided(60, goneFor(0, missingFor("a", 13, 12, 11), 1), 0),
			2,
			time.Time{},
			time.Minute,
		},
		{
			"a VM that was held back two minutes ago is first",
			4,
			undecided(2, missingFor("a", 12, 11, 11), 0),
			1,
			time.Time{},
			releaseGap,
		},
		{
			"a VM that was deleted since counts, too",
			6,
			missingFor("a", 11, 11, 11),
			0,
			noon.Add(-20 * time.Second),
			40 * time.Second,
		},
		{
			"a VM declared gone long ago does not hold back others",
			4,
			goneFor(11, missingFor("a", 30, 30, 1), 0, 1),
			2,
			time.Time{},
			0,
		},
		{
			"a VM declared gone just now does",
			4,
			goneFor(2, missingFor("a", 5, 5, 1), 0, 1),
			2,
			time.Time{},
			9 * time.Minute,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			left := holdBack(noon, tt.missing[tt.me], tt.missing, tt.n, tt.last)

			g.Expect(left).To(Equal(tt.left))
		})
	}
}

func TestMissingTogether(t *testing.T) {
	all := func(of ...[]Missing) []Missing {
		var all []Missing
		for _, m := range of {
			all = append(all, m...)
		}
		return all
	}
	tests := []struct {
		name         string
		missing      []Missing
		acknowledged time.Time
		stops        bool
	}{
		{"machines of one cluster do not hold a site", missingFor("a", 1, 1, 1), time.Time{}, false},
		{"nor do machines of two clusters", all(missingFor("a", 1), missingFor("b", 1)), time.Time{}, false},
		{"machines of three clusters do", all(missingFor("a", 1), missingFor("b", 5), missingFor("c", 9)), time.Time{}, true},
		{
			"not if they are more than ten minutes apart",
			all(missingFor("a", 6), missingFor("b", 1), missingFor("c", 12)),
			time.Time{},
			false,
		},
		{
			"they may have disappeared together long ago",
			all(missingFor("a", 66), missingFor("b", 61), missingFor("c", 70)),
			time.Time{},
			true,
		},
		{
			"one of this cluster must be among them",
			all(missingFor("a", 30), missingFor("b", 1), missingFor("c", 1), missingFor("d", 1)),
			time.Time{},
			false,
		},
		{
			"a VM that a user acknowledged does not count",
			all(missingFor("a", 5), missingFor("b", 5), missingFor("c", 5)),
			noon.Add(-time.Minute),
			false,
		},
		{
			"a VM that disappeared after that does",
			all(missingFor("a", 5), missingFor("b", 5), missingFor("c", 5)),
			noon.Add(-6 * time.Minute),
			true,
		},
		{
			"a VM declared gone long ago does not count",
			all(missingFor("a", 1), missingFor("b", 1), goneFor(11, missingFor("c", 1), 0)),
			time.Time{},
			false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(together(noon, "a", tt.acknowledged, tt.missing)).To(Equal(tt.stops))
		})
	}
}
