// Package gone holds back machines that count as gone while so many others do that something else may be wrong. It is pure:
// who looks, and what a look proves, is the business of those who ask.
package gone

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
)

// A Missing is a VM that was seen once and is not any more.
type Missing struct {
	Cluster string // namespace and name; all that are compared with each other have the same form
	Name    string
	Since   time.Time // when it was first not seen
	Gone    time.Time // when it was declared gone; zero if it was not
}

// newly returns those that are missing and were not declared gone, or only just.
func newly(now time.Time, all []Missing) []Missing {
	var fresh []Missing
	for _, m := range all {
		if m.Gone.IsZero() || now.Sub(m.Gone) < heldFor {
			fresh = append(fresh, m)
		}
	}
	return fresh
}

// HeldBack returns how long a missing VM is held back because too many of its cluster went missing together; 0 if it may be
// declared gone. The cluster has n machines; all are those that are missing, and last is when one was last released.
func HeldBack(now time.Time, me Missing, all []Missing, n int, last time.Time) time.Duration {
	fresh := newly(now, all)
	if len(fresh) <= max(1, n/3) {
		return 0
	}
	if left := me.Since.Add(heldFor).Sub(now); left > 0 {
		return left
	}
	var turn []Missing
	for _, m := range fresh {
		if m.Gone.IsZero() && now.Sub(m.Since) >= heldFor {
			turn = append(turn, m)
		}
		if m.Gone.After(last) {
			last = m.Gone
		}
	}
	if first := slices.MinFunc(turn, byAge); first.Name != me.Name {
		return releaseGap
	}
	return max(0, last.Add(releaseGap).Sub(now))
}

func byAge(a, b Missing) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
}

// Together says whether machines of so many clusters went missing together that something else must be wrong; a
// machine of the cluster must be among them. Machines that a person has acknowledged, by missing since before then, do
// not count.
func Together(now time.Time, cluster string, acknowledged time.Time, all []Missing) bool {
	fresh := newly(now, all)
	for _, first := range fresh {
		clusters, mine := map[string]bool{}, false
		for _, m := range fresh {
			if d := m.Since.Sub(first.Since); d >= 0 && d <= heldFor {
				clusters[m.Cluster] = true
				mine = mine || m.Cluster == cluster && m.Since.After(acknowledged)
			}
		}
		if mine && len(clusters) >= stopAtClusters {
			return true
		}
	}
	return false
}
