// SPDX-License-Identifier: Apache-2.0

package gone

import (
	"cmp"
	"slices"
	"time"
)

const (
	// heldFor is how long machines are held back when too many of a cluster go missing together, and how close together
	// machines of several clusters must go missing to stop the site.
	heldFor = 10 * time.Minute
	// releaseGap is the least time between two machines that are released one by one.
	releaseGap = time.Minute
	// candidateFor is how long a machine that was held back takes part in the order of release: one that was paused
	// since, or cannot be observed any more, holds up no other.
	candidateFor = 3 * releaseGap
	// stopAtClusters of a site with missing machines stop the site.
	stopAtClusters = 3
)

// A Missing is a machine that was found missing.
type Missing struct {
	Cluster string // namespace and name; all that are compared with each other have the same form
	Name    string
	Since   time.Time // when it was first found missing; zero: just now
	Gone    time.Time // when it was declared gone; zero if it was not
	Held    time.Time // when it was last held back although it could be declared gone; zero: it cannot, or was not checked
}

// release decides whether something else may be wrong: with the cluster, or with the whole site.
func (s *Site) release(now time.Time, me Missing) Verdict {
	all := append([]Missing{me}, s.Missing...)
	if me.Since.After(s.Acknowledged) && (s.Stopped || together(now, me.Cluster, s.Acknowledged, all)) {
		return counted(Stopped)
	}
	if s.Neighbors {
		asked := s.Asked
		if asked.IsZero() {
			asked = now
		}
		if left := asked.Add(askedFor).Sub(now); left > 0 {
			return Verdict{State: Waiting, Reason: AskingSite, After: left, Counts: true}
		}
	}
	mine := slices.DeleteFunc(all, func(m Missing) bool { return m.Cluster != me.Cluster })
	if left := holdBack(now, me, mine, s.Machines, s.Released); left > 0 {
		return Verdict{State: HeldBack, After: left, Counts: true}
	}
	return counted(Gone)
}

// recent returns those that were not declared gone, or only just.
func recent(now time.Time, all []Missing) []Missing {
	var found []Missing
	for _, m := range all {
		if m.Gone.IsZero() || now.Sub(m.Gone) < heldFor {
			found = append(found, m)
		}
	}
	return found
}

// holdBack returns how long a missing machine is held back because too many of its cluster went missing together; 0 if
// it may be declared gone. The cluster has n machines; all are those that are missing, and last is when one was last
// released.
func holdBack(now time.Time, me Missing, all []Missing, n int, last time.Time) time.Duration {
	found := recent(now, all)
	if len(found) <= max(1, n/3) {
		return 0
	}
	if left := me.Since.Add(heldFor).Sub(now); left > 0 {
		return left
	}
	for _, m := range found {
		if m.Gone.After(last) {
			last = m.Gone
		}
	}
	if isBehind(now, me, found) {
		return releaseGap
	}
	return max(0, last.Add(releaseGap).Sub(now))
}

// isBehind reports whether another machine is released before me: one that is missing for longer, and was lately found
// ready to be released. One that cannot be released, such as one that is paused, is passed over.
func isBehind(now time.Time, me Missing, all []Missing) bool {
	return slices.ContainsFunc(all, func(m Missing) bool {
		candidate := m.Gone.IsZero() && now.Sub(m.Since) >= heldFor && now.Sub(m.Held) < candidateFor
		return candidate && m.Name != me.Name && byAge(m, me) < 0
	})
}

func byAge(a, b Missing) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
}

// together reports whether machines of so many clusters went missing together that something else must be wrong; a
// machine of the cluster must be among them. Machines that a person has acknowledged, by missing since before then, do
// not count.
func together(now time.Time, cluster string, acknowledged time.Time, all []Missing) bool {
	found := recent(now, all)
	for _, first := range found {
		clusters := map[string]bool{}
		mine := false
		for _, m := range found {
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
