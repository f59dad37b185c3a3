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
		{name: "one of one is not held back", n: 1, missing: missingFor("a", 1), last: time.Time{}},
		{name: "one of two is not held back", n: 2, missing: missingFor("a", 1), last: time.Time{}},
		{name: "two of two are held back", n: 2, missing: missingFor("a", 1, 1), last: time.Time{}, left: 9 * time.Minute},
		{name: "a third of nine is not", n: 9, missing: missingFor("a", 1, 1, 1), last: time.Time{}},
		{name: "more than a third is held back", n: 9, missing: missingFor("a", 1, 2, 2, 2), last: time.Time{}, left: 9 * time.Minute},
		{name: "after ten minutes the first one is released", n: 4, missing: missingFor("a", 11, 11, 11), last: time.Time{}},
		{name: "and the others wait until it is deleted", n: 4, missing: missingFor("a", 11, 11, 11), me: 1, last: time.Time{}, left: releaseGap},
		{name: "the VM that has been missing longest is first", n: 4, missing: missingFor("a", 11, 12, 11), me: 1, last: time.Time{}},
		{
			name:    "the next one waits for a minute after the last",
			n:       4,
			missing: goneFor(0, missingFor("a", 11, 11, 11), 0),
			me:      1,
			last:    time.Time{},
			left:    time.Minute,
		},
		{name: "and is then released", n: 4, missing: goneFor(1, missingFor("a", 12, 12, 12), 0), me: 1, last: time.Time{}},
		{
			name:    "a VM that cannot be released does not block others",
			n:       4,
			missing: undecided(60, missingFor("a", 12, 11, 11), 0),
			me:      1,
			last:    time.Time{},
		},
		{
			name:    "the gap remains when one is skipped",
			n:       4,
			missing: undecided(60, goneFor(0, missingFor("a", 13, 12, 11), 1), 0),
			me:      2,
			last:    time.Time{},
			left:    time.Minute,
		},
		{
			name:    "a VM that was held back two minutes ago is first",
			n:       4,
			missing: undecided(2, missingFor("a", 12, 11, 11), 0),
			me:      1,
			last:    time.Time{},
			left:    releaseGap,
		},
		{
			name:    "a VM that was deleted since counts, too",
			n:       6,
			missing: missingFor("a", 11, 11, 11),
			last:    noon.Add(-20 * time.Second),
			left:    40 * time.Second,
		},
		{
			name:    "a VM declared gone long ago does not hold back others",
			n:       4,
			missing: goneFor(11, missingFor("a", 30, 30, 1), 0, 1),
			me:      2,
			last:    time.Time{},
		},
		{
			name:    "a VM declared gone just now does",
			n:       4,
			missing: goneFor(2, missingFor("a", 5, 5, 1), 0, 1),
			me:      2,
			last:    time.Time{},
			left:    9 * time.Minute,
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
		{name: "machines of one cluster do not hold a site", missing: missingFor("a", 1, 1, 1), acknowledged: time.Time{}},
		{name: "nor do machines of two clusters", missing: all(missingFor("a", 1), missingFor("b", 1)), acknowledged: time.Time{}},
		{name: "machines of three clusters do", missing: all(missingFor("a", 1), missingFor("b", 5), missingFor("c", 9)), acknowledged: time.Time{}, stops: true},
		{
			name:         "not if they are more than ten minutes apart",
			missing:      all(missingFor("a", 6), missingFor("b", 1), missingFor("c", 12)),
			acknowledged: time.Time{},
		},
		{
			name:         "they may have disappeared together long ago",
			missing:      all(missingFor("a", 66), missingFor("b", 61), missingFor("c", 70)),
			acknowledged: time.Time{},
			stops:        true,
		},
		{
			name:         "one of this cluster must be among them",
			missing:      all(missingFor("a", 30), missingFor("b", 1), missingFor("c", 1), missingFor("d", 1)),
			acknowledged: time.Time{},
		},
		{
			name:         "a VM that a user acknowledged does not count",
			missing:      all(missingFor("a", 5), missingFor("b", 5), missingFor("c", 5)),
			acknowledged: noon.Add(-time.Minute),
		},
		{
			name:         "a VM that disappeared after that does",
			missing:      all(missingFor("a", 5), missingFor("b", 5), missingFor("c", 5)),
			acknowledged: noon.Add(-6 * time.Minute),
			stops:        true,
		},
		{
			name:         "a VM declared gone long ago does not count",
			missing:      all(missingFor("a", 1), missingFor("b", 1), goneFor(11, missingFor("c", 1), 0)),
			acknowledged: time.Time{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(together(noon, "a", tt.acknowledged, tt.missing)).To(Equal(tt.stops))
		})
	}
}
