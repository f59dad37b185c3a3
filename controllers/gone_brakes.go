package controllers

import (
	"cmp"
	"slices"
	"time"
)

const (
	// heldFor is how long machines are held back when too many of a cluster go missing together, and how close together
	// machines of several clusters must go missing to stop everything.
	heldFor = 10 * time.Minute
	// releaseGap is the least time between two of those that are released one by one.
	releaseGap = time.Minute
	// stopAtClusters of a site with missing machines stop everything there.
	stopAtClusters = 3
	// announcedFor is how long a machine that counts as gone waits for those of other clusters of the site to look, too.
	announcedFor = 15 * time.Second
)

// A missingVM is a VM that was seen once and is not any more.
type missingVM struct {
	cluster string // namespace and name
	name    string
	since   time.Time // when it was first not seen
	gone    time.Time // when it was declared gone; zero if it was not
}

// newlyMissing returns those that are missing and were not declared gone, or only just.
func newlyMissing(now time.Time, all []missingVM) []missingVM {
	var fresh []missingVM
	for _, m := range all {
		if m.gone.IsZero() || now.Sub(m.gone) < heldFor {
			fresh = append(fresh, m)
		}
	}
	return fresh
}

// heldBack returns how long a missing VM is held back because too many of its cluster went missing together; 0 if it may be
// declared gone. The cluster has n machines; all are those that are missing, and last is when one was last released.
func heldBack(now time.Time, me missingVM, all []missingVM, n int, last time.Time) time.Duration {
	fresh := newlyMissing(now, all)
	if len(fresh) <= max(1, n/3) {
		return 0
	}
	if left := me.since.Add(heldFor).Sub(now); left > 0 {
		return left
	}
	var turn []missingVM
	for _, m := range fresh {
		if m.gone.IsZero() && now.Sub(m.since) >= heldFor {
			turn = append(turn, m)
		}
		if m.gone.After(last) {
			last = m.gone
		}
	}
	if first := slices.MinFunc(turn, byAge); first.name != me.name {
		return releaseGap
	}
	return max(0, last.Add(releaseGap).Sub(now))
}

func byAge(a, b missingVM) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name))
}

// missingTogether says whether machines of so many clusters went missing together that something else must be wrong; a
// machine of the cluster must be among them. Machines that a person has acknowledged, by missing since before then, do
// not count.
func missingTogether(now time.Time, cluster string, acknowledged time.Time, all []missingVM) bool {
	fresh := newlyMissing(now, all)
	for _, first := range fresh {
		clusters, mine := map[string]bool{}, false
		for _, m := range fresh {
			if d := m.since.Sub(first.since); d >= 0 && d <= heldFor {
				clusters[m.cluster] = true
				mine = mine || m.cluster == cluster && m.since.After(acknowledged)
			}
		}
		if mine && len(clusters) >= stopAtClusters {
			return true
		}
	}
	return false
}
