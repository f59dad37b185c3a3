// SPDX-License-Identifier: Apache-2.0

package gone

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// lost returns a recorded machine of cluster a that has been missing for some seconds, in a visible container without
// it.
func lost(seconds int, mods ...func(*Subject)) Subject {
	s := Subject{
		Missing:  Missing{Cluster: "a", Name: "0", Since: noon.Add(-time.Duration(seconds) * time.Second)},
		Evidence: Evidence{ScopeShown: true, HomeShown: true},
	}
	for _, mod := range mods {
		mod(&s)
	}
	return s
}

func homeHidden(s *Subject)     { s.Evidence.HomeShown = false }
func siblingsHidden(s *Subject) { s.Evidence.SiblingsHidden = true }
func scopeHidden(s *Subject)    { s.Evidence.ScopeShown = false }
func scopeGone(s *Subject)      { s.Evidence.ScopeGone = true }
func seesAll(s *Subject)        { s.Evidence.SeesAll = true }
func deleted(s *Subject) {
	s.Evidence.Deleted = true
	s.Evidence.Logged = true
}
func unrecorded(s *Subject) { s.Unrecorded = true }
func requested(s *Subject)  { s.DeleteRequested = true }
func unseen(s *Subject)     { s.Since = time.Time{} }
func young(s *Subject)      { s.Born = noon.Add(-23 * time.Hour) }

func TestProofsOfOneObservation(t *testing.T) {
	shown := func(s *Subject) { s.Evidence.Shown = true }
	listed := func(s *Subject) { s.Evidence.Listed = true }
	held := func(s *Subject) { s.Evidence.HomeHolds = true }
	mods := func(mods ...func(*Subject)) []func(*Subject) { return mods }
	tests := []struct {
		name string
		mods []func(*Subject)
		want Verdict
	}{
		{"a visible object exists", mods(shown, scopeHidden), Verdict{State: Present}},
		{"a listed object may exist", mods(listed, deleted), Verdict{Reason: Listed}},
		{"an object listed by its container may exist, too", mods(held, deleted), Verdict{Reason: HeldByHome}},
		{"even after its deletion was requested", mods(held, requested), Verdict{Reason: HeldByHome}},
		{"an account that sees no scope proves nothing", mods(scopeHidden, deleted), Verdict{Reason: ScopeHidden}},
		{
			"access to an invisible container may be missing, regardless of other objects",
			mods(homeHidden),
			Verdict{Reason: HomeHidden},
		},
		{"even after its deletion was requested", mods(homeHidden, requested), Verdict{Reason: HomeHidden}},
		{
			"the rights to view everything prove it for an account that sees another container",
			mods(homeHidden, siblingsHidden, seesAll),
			counted(Gone),
		},
		{"but not for a listed object", mods(homeHidden, seesAll, listed), Verdict{Reason: Listed}},
		{"nor without the scope", mods(homeHidden, seesAll, scopeHidden), Verdict{Reason: ScopeHidden}},
		{"a deleted scope includes its contents", mods(homeHidden, scopeHidden, scopeGone), counted(Gone)},
		{"the log proves that a container was deleted", mods(homeHidden, siblingsHidden, deleted), counted(Gone)},
		{
			"a container without other objects of the cluster proves nothing",
			mods(siblingsHidden),
			Verdict{Reason: SiblingsHidden},
		},
		{"an unrecorded machine needs its container", mods(unrecorded, siblingsHidden), counted(Gone)},
		{"or any object of the cluster", mods(unrecorded, homeHidden), counted(Gone)},
		{"but not an empty result", mods(unrecorded, homeHidden, siblingsHidden), Verdict{Reason: SiblingsHidden}},
		{"its container without it is sufficient", nil, counted(Gone)},
		{"a machine that existed within a day must be in the log", mods(young), Verdict{Reason: Unlogged, Counts: true}},
		{"which is available", mods(young, deleted), counted(Gone)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(Decide(noon, lost(61, tt.mods...), &Site{Machines: 1})).To(Equal(tt.want))
		})
	}
}

func TestAbsenceIsProvedTwice(t *testing.T) {
	once := func(left time.Duration) Verdict {
		return Verdict{State: Waiting, Reason: Once, After: left, Counts: true}
	}
	tests := []struct {
		name    string
		subject Subject
		site    *Site
		want    Verdict
	}{
		{"the first observation is not sufficient", lost(0, unseen), &Site{}, once(ProofInterval)},
		{"nor is one within a minute", lost(60), &Site{}, once(time.Second)},
		{"nor is one in the future", lost(-1), &Site{}, once(ProofInterval)},
		{
			"a clock that was moved forward proves nothing",
			lost(3600, func(s *Subject) { s.Observed = noon.Add(-time.Second) }),
			&Site{},
			once(time.Minute),
		},
		{"two observations a minute apart are sufficient", lost(61), &Site{}, counted(Gone)},
		{"including machines that are not held back", lost(61), nil, counted(Gone)},
		{"a machine counts after we requested its deletion", lost(0, unseen, requested), &Site{}, counted(Gone)},
		{
			"but not without its container",
			lost(0, unseen, requested, homeHidden, deleted),
			&Site{},
			once(ProofInterval),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(Decide(noon, tt.subject, tt.site)).To(Equal(tt.want))
		})
	}
}

func TestACreateRequestMayTakeEffectLate(t *testing.T) {
	at := func(ago time.Duration) func(*Subject) {
		return func(s *Subject) { s.Requested = noon.Add(-ago) }
	}
	tests := []struct {
		name    string
		subject Subject
		want    Verdict
	}{
		{
			"within five minutes",
			lost(120, unrecorded, at(4*time.Minute)),
			Verdict{State: Waiting, Reason: Creating, After: time.Minute, Counts: true},
		},
		{"not later", lost(120, unrecorded, at(LateRequest)), counted(Gone)},
		{"not if the VDC is deleted", lost(120, unrecorded, scopeGone, at(time.Minute)), counted(Gone)},
		{"not a recorded machine", lost(120, at(time.Minute)), counted(Gone)},
		{"not one that was requested hours in the future", lost(120, unrecorded, at(-time.Hour)), counted(Gone)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(Decide(noon, tt.subject, &Site{Machines: 1})).To(Equal(tt.want))
		})
	}
}

func TestOtherMachinesHoldBackARelease(t *testing.T) {
	three := append(missingFor("b", 5), missingFor("c", 9)...)
	asking := Verdict{State: Waiting, Reason: AskingSite, After: 15 * time.Second, Counts: true}
	tests := []struct {
		name    string
		subject Subject
		site    Site
		want    Verdict
	}{
		{
			"half of a cluster",
			lost(120),
			Site{Machines: 4, Missing: missingFor("a", 2, 2, 2)[1:]},
			Verdict{State: HeldBack, After: 8 * time.Minute, Counts: true},
		},
		{
			"not a machine that was already declared gone",
			lost(120, func(s *Subject) { s.Gone = noon }),
			Site{Machines: 4, Missing: missingFor("a", 2, 2, 2)[1:]},
			counted(Gone),
		},
		{
			"not an unrecorded machine",
			lost(120, unrecorded),
			Site{Machines: 4, Missing: missingFor("a", 2, 2, 2)[1:]},
			counted(Gone),
		},
		{"three clusters", lost(120), Site{Missing: three}, counted(Stopped)},
		{"a hold of another cluster", lost(120), Site{Stopped: true}, counted(Stopped)},
		{
			"not after a user acknowledged it",
			lost(120),
			Site{Missing: three, Stopped: true, Acknowledged: noon},
			counted(Gone),
		},
		{"clusters that have not been notified", lost(120), Site{Neighbors: true}, asking},
		{"not for long", lost(120), Site{Neighbors: true, NotifiedAt: noon.Add(-15 * time.Second)}, counted(Gone)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(Decide(noon, tt.subject, &tt.site)).To(Equal(tt.want))
		})
	}
}

func TestReasonsAreDocumented(t *testing.T) {
	for r := Listed; r <= AskingSite; r++ {
		NewWithT(t).Expect(r.String()).NotTo(BeEmpty())
	}
}
