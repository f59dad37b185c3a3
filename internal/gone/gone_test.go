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
		{name: "a visible object exists", mods: mods(shown, scopeHidden), want: Verdict{State: Present}},
		{name: "a listed object may exist", mods: mods(listed, deleted), want: Verdict{Reason: Listed}},
		{name: "an object listed by its container may exist, too", mods: mods(held, deleted), want: Verdict{Reason: HeldByHome}},
		{name: "even after its deletion was requested", mods: mods(held, requested), want: Verdict{Reason: HeldByHome}},
		{name: "an account that sees no scope proves nothing", mods: mods(scopeHidden, deleted), want: Verdict{Reason: ScopeHidden}},
		{
			name: "access to an invisible container may be missing, regardless of other objects",
			mods: mods(homeHidden),
			want: Verdict{Reason: HomeHidden},
		},
		{name: "even after its deletion was requested", mods: mods(homeHidden, requested), want: Verdict{Reason: HomeHidden}},
		{
			name: "the rights to view everything prove it for an account that sees another container",
			mods: mods(homeHidden, siblingsHidden, seesAll),
			want: counted(Gone),
		},
		{name: "but not for a listed object", mods: mods(homeHidden, seesAll, listed), want: Verdict{Reason: Listed}},
		{name: "nor without the scope", mods: mods(homeHidden, seesAll, scopeHidden), want: Verdict{Reason: ScopeHidden}},
		{name: "a deleted scope includes its contents", mods: mods(homeHidden, scopeHidden, scopeGone), want: counted(Gone)},
		{name: "the log proves that a container was deleted", mods: mods(homeHidden, siblingsHidden, deleted), want: counted(Gone)},
		{
			name: "a container without other objects of the cluster proves nothing",
			mods: mods(siblingsHidden),
			want: Verdict{Reason: SiblingsHidden},
		},
		{name: "an unrecorded machine needs its container", mods: mods(unrecorded, siblingsHidden), want: counted(Gone)},
		{name: "or any object of the cluster", mods: mods(unrecorded, homeHidden), want: counted(Gone)},
		{name: "but not an empty result", mods: mods(unrecorded, homeHidden, siblingsHidden), want: Verdict{Reason: SiblingsHidden}},
		{name: "its container without it is sufficient", want: counted(Gone)},
		{name: "a machine that existed within a day must be in the log", mods: mods(young), want: Verdict{Reason: Unlogged, Counts: true}},
		{name: "which is available", mods: mods(young, deleted), want: counted(Gone)},
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
		{name: "the first observation is not sufficient", subject: lost(0, unseen), site: &Site{}, want: once(ProofInterval)},
		{name: "nor is one within a minute", subject: lost(60), site: &Site{}, want: once(time.Second)},
		{name: "nor is one in the future", subject: lost(-1), site: &Site{}, want: once(ProofInterval)},
		{
			name:    "a clock that was moved forward proves nothing",
			subject: lost(3600, func(s *Subject) { s.Observed = noon.Add(-time.Second) }),
			site:    &Site{},
			want:    once(time.Minute),
		},
		{name: "two observations a minute apart are sufficient", subject: lost(61), site: &Site{}, want: counted(Gone)},
		{name: "including machines that are not held back", subject: lost(61), want: counted(Gone)},
		{name: "a machine counts after we requested its deletion", subject: lost(0, unseen, requested), site: &Site{}, want: counted(Gone)},
		{
			name:    "but not without its container",
			subject: lost(0, unseen, requested, homeHidden, deleted),
			site:    &Site{},
			want:    once(ProofInterval),
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
			name:    "within five minutes",
			subject: lost(120, unrecorded, at(4*time.Minute)),
			want:    Verdict{State: Waiting, Reason: Creating, After: time.Minute, Counts: true},
		},
		{name: "not later", subject: lost(120, unrecorded, at(LateRequest)), want: counted(Gone)},
		{name: "not if the VDC is deleted", subject: lost(120, unrecorded, scopeGone, at(time.Minute)), want: counted(Gone)},
		{name: "not a recorded machine", subject: lost(120, at(time.Minute)), want: counted(Gone)},
		{name: "not one that was requested hours in the future", subject: lost(120, unrecorded, at(-time.Hour)), want: counted(Gone)},
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
			name:    "half of a cluster",
			subject: lost(120),
			site:    Site{Machines: 4, Missing: missingFor("a", 2, 2, 2)[1:]},
			want:    Verdict{State: HeldBack, After: 8 * time.Minute, Counts: true},
		},
		{
			name:    "not a machine that was already declared gone",
			subject: lost(120, func(s *Subject) { s.Gone = noon }),
			site:    Site{Machines: 4, Missing: missingFor("a", 2, 2, 2)[1:]},
			want:    counted(Gone),
		},
		{
			name:    "not an unrecorded machine",
			subject: lost(120, unrecorded),
			site:    Site{Machines: 4, Missing: missingFor("a", 2, 2, 2)[1:]},
			want:    counted(Gone),
		},
		{name: "three clusters", subject: lost(120), site: Site{Missing: three}, want: counted(Stopped)},
		{name: "a hold of another cluster", subject: lost(120), site: Site{Stopped: true}, want: counted(Stopped)},
		{
			name:    "not after a user acknowledged it",
			subject: lost(120),
			site:    Site{Missing: three, Stopped: true, Acknowledged: noon},
			want:    counted(Gone),
		},
		{name: "clusters that have not been notified", subject: lost(120), site: Site{Neighbors: true}, want: asking},
		{name: "not for long", subject: lost(120), site: Site{Neighbors: true, NotifiedAt: noon.Add(-15 * time.Second)}, want: counted(Gone)},
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
