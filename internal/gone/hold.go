// SPDX-License-Identifier: Apache-2.0

package gone

import (
	"cmp"
	"slices"
	"time"
)

const (
	// heldFor is how long machines are held back if too many of a cluster go missing together. Machines of several
	// clusters that go missing within this time stop the site.
	heldFor = 10 * time.Minute
	// releaseGap is the minimum time between two machines that are released one by one.
	releaseGap = time.Minute
	// candidateFor is how long a machine that was held back takes part in the order of release. A machine that was
	// paused since, or can no longer be observed, therefore delays no other.
	candidateFor = 3 * releaseGap
	// stopAtClusters is the number of clusters with missing machines that stops a site.
	stopAtClusters = 3
)

// A Missing is a machine that was found missing.
type Missing struct {
	Cluster string // namespace and name, in the same form for all that are compared
	Name    string
	Since   time.Time // when it was first found missing; zero: just now
	Gone    time.Time // when it was declared gone; zero: never
	Held    time.Time // when it was last held back although it is proved gone; zero: never, or not checked
}

// release decides whether the cluster, or the whole site, may have another problem that explains the missing machine.
func (s *Site) release(now time.Time, me Missing) Verdict {
	all := append([]Missing{me}, s.Missing...)
	if me.Since.After(s.Acknowledged) && (s.Stopped || together(now, me.Cluster, s.Acknowledged, all)) {
		return counted(Stopped)
	}
	if s.Neighbors {
		notifiedAt := s.NotifiedAt
		if notifiedAt.IsZero() {
			notifiedAt = now
		}
		if left := notifiedAt.Add(siteCheck).Sub(now); left > 0 {
			return Verdict{State: Waiting, Reason: AskingSite, After: left, Counts: true}
		}
	}
	mine := slices.DeleteFunc(all, func(m Missing) bool { return m.Cluster != me.Cluster })
	if left := holdBack(now, me, mine, s.Machines, s.Released); left > 0 {
		return Verdict{State: HeldBack, After: left, Counts: true}
	}
	return counted(Gone)
}

// recent returns the machines that were not declared gone, or only recently.
func recent(now time.Time, all []Missing) []Missing {
	var found []Missing
	for _, m := range all {
		if m.Gone.IsZero() || now.Sub(m.Gone) < heldFor {
			found = append(found, m)
		}
	}
	return found
}

// holdBack returns how long a missing machine is held back because too many of its cluster went missing together; zero
// if it may be declared gone. The cluster has n machines, all are the missing ones, and last is when one was last
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

// isBehind reports whether another machine is released before me: one that is missing for longer and was recently ready
// to be released. Machines that cannot be released, such as paused ones, are skipped.
func isBehind(now time.Time, me Missing, all []Missing) bool {
	return slices.ContainsFunc(all, func(m Missing) bool {
		candidate := m.Gone.IsZero() && now.Sub(m.Since) >= heldFor && now.Sub(m.Held) < candidateFor
		return candidate && m.Name != me.Name && byAge(m, me) < 0
	})
}

func byAge(a, b Missing) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
}

// together reports whether machines of so many clusters, this one included, went missing together that the site must
// have another problem. Machines that a user has acknowledged, because they are missing since before then, do not
// count.
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
