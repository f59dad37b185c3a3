// SPDX-License-Identifier: Apache-2.0

// Package gone decides whether something that a cloud does not show any more is gone. It makes no request and knows no
// cloud: the evidence is gathered elsewhere.
package gone

import "time"

const (
	// ProofInterval is the least time between two observations that together prove absence: a minute, and a second
	// because annotations store times without fractions.
	ProofInterval = 61 * time.Second
	// LateRequest is how long a request whose answer was lost may still create what it asks for.
	LateRequest = 5 * time.Minute
	// logKept is how long a cloud keeps its log of tasks at least.
	logKept = 24 * time.Hour
	// askedFor is how long the first machine waits for the observations of the other clusters of its site.
	askedFor = 15 * time.Second
)

// Evidence is what requests showed of a subject. The clients of clouds gather it in values with the same fields.
type Evidence struct {
	Shown          bool // a read by its identity succeeded
	Listed         bool // a query for its identity found it
	ScopeShown     bool // the account sees the part of the cloud that it was in, such as the VDC
	ScopeGone      bool // the account sees all such parts, and that one is not among them
	HomeShown      bool // the account sees the container that grants access to it, such as the vApp
	HomeHolds      bool // that container lists it
	SiblingsHidden bool // others of the cluster are known, and none that was asked for is shown
	SeesAll        bool // the account sees all containers, of all owners, and one in the same scope
	Logged         bool // the log of the cloud has tasks that worked on it
	Deleted        bool // according to the log it was deleted, or its container was
}

// A Subject is what may be gone.
type Subject struct {
	Missing
	Evidence Evidence

	// Unrecorded is true if its creation was requested and its identity never became known.
	Unrecorded bool
	// Requested is when its creation was requested last; zero if that is long ago.
	Requested time.Time
	// DeleteRequested is true if its deletion was requested by this program.
	DeleteRequested bool
	// Observed is when this process first found it missing; zero if another one did. Unlike Since it comes from a clock
	// that does not leap.
	Observed time.Time
	// Born is when it certainly existed; zero if that is long ago.
	Born time.Time
}

// A Site is what else is missing.
type Site struct {
	Missing      []Missing // of all clusters of the site, without the subject
	Machines     int       // of the subject's cluster that have or had a VM
	Released     time.Time // when one of the cluster was last declared gone
	Acknowledged time.Time // what was missing before then is gone, says a person
	Stopped      bool      // a cluster of the site was stopped after that
	Neighbors    bool      // other clusters of the site have machines
	Asked        time.Time // when these were made to observe theirs; zero: they were not
}

// A State is the outcome of a decision. The zero value is the safe one.
type State int

// States.
const (
	Unknown  State = iota // the evidence proves nothing
	Present               // it exists
	Waiting               // decide again after a while
	HeldBack              // it is proved gone, as are suspiciously many others: decide again after a while
	Stopped               // so are machines of other clusters: a person must acknowledge it
	Gone
)

// A Reason explains the states Unknown and Waiting.
type Reason int

// Reasons.
const (
	Listed         Reason = iota + 1 // it is listed but cannot be read
	HeldByHome                       // its container lists it
	ScopeHidden                      // not even the scope is shown
	HomeHidden                       // neither its container nor a log of its deletion is shown
	SiblingsHidden                   // nothing of the cluster is shown
	// Unlogged: it existed less than a day ago, and the log does not mention it: the cloud may have been restored.
	Unlogged
	Once       // it was observed missing once
	AskingSite // other clusters of the site observe theirs first
	Creating   // a request to create it may still be on its way
)

var reasons = map[Reason]string{
	Listed:         "it is listed but not readable: grant the user access to it",
	HeldByHome:     "its parent lists it, but it is not readable: grant the user access to it",
	ScopeHidden:    "the user can see no objects of the cloud",
	HomeHidden:     "neither its parent nor a log of its deletion is visible to the user",
	SiblingsHidden: "no other object of the cluster is visible to the user",
	Unlogged:       "the log of the cloud has no record of it: the cloud may have been restored from a backup",
	Once:           "it is treated as deleted if it is still missing in one minute",
	AskingSite:     "other clusters of the site are checked first",
	Creating:       "a request to create it may still be in progress",
}

// String explains the reason to a person.
func (r Reason) String() string { return reasons[r] }

// A Verdict is what is known of a subject.
type Verdict struct {
	State  State
	Reason Reason
	After  time.Duration // when to decide again, for Waiting and HeldBack
	// Counts reports whether the observation counts as proof. If not, what was observed before counts no more, either.
	Counts bool
}

// Decide decides whether a subject is gone, after an observation. A nil site means that nothing holds it back: it is a
// container, or no identity is recorded.
func Decide(now time.Time, s Subject, site *Site) Verdict {
	if v := s.judge(); !v.Counts {
		return v
	}
	if s.DeleteRequested && s.Evidence.HomeShown {
		return counted(Gone)
	}
	if left := s.untilRequestsEnd(now); left > 0 {
		return Verdict{State: Waiting, Reason: Creating, After: left, Counts: true}
	}
	if left := s.untilProved(now); left > 0 {
		return Verdict{State: Waiting, Reason: Once, After: left, Counts: true}
	}
	switch {
	case s.Unrecorded || site == nil:
		return counted(Gone)
	case s.unlogged(now):
		return Verdict{Reason: Unlogged, Counts: true}
	case !s.Gone.IsZero():
		return counted(Gone)
	}
	return site.release(now, s.Missing)
}

// unlogged reports whether the log of the cloud does not mention the subject although it cannot be older than the log.
func (s Subject) unlogged(now time.Time) bool {
	return !s.Born.IsZero() && now.Sub(s.Born) <= logKept && !s.Evidence.Logged
}

func counted(state State) Verdict { return Verdict{State: state, Counts: true} }

// judge reports what one observation shows; it counts if all that must be visible is, except for the subject.
func (s Subject) judge() Verdict {
	e := s.Evidence
	switch {
	case e.Shown:
		return Verdict{State: Present}
	case e.Listed:
		return Verdict{Reason: Listed}
	case e.HomeHolds:
		return Verdict{Reason: HeldByHome}
	case s.DeleteRequested && e.HomeShown:
		return Verdict{Counts: true}
	}
	return s.judgeSurroundings()
}

// judgeSurroundings reports what one observation shows of a subject that nothing lists.
func (s Subject) judgeSurroundings() Verdict {
	e := s.Evidence
	switch {
	case e.ScopeGone:
		return Verdict{Counts: true}
	case !e.ScopeShown:
		return Verdict{Reason: ScopeHidden}
	case e.Deleted, e.SeesAll, s.Unrecorded && e.HomeShown:
		return Verdict{Counts: true}
	case !e.HomeShown && !s.Unrecorded:
		return Verdict{Reason: HomeHidden}
	case e.SiblingsHidden:
		return Verdict{Reason: SiblingsHidden}
	}
	return Verdict{Counts: true}
}

// untilRequestsEnd returns how long a request may still create the subject. None does where its scope is gone. A request
// in the future was noted by a clock that was wrong.
func (s Subject) untilRequestsEnd(now time.Time) time.Duration {
	if !s.Unrecorded || s.Evidence.ScopeGone || s.Requested.After(now.Add(LateRequest)) {
		return 0
	}
	return s.Requested.Add(LateRequest).Sub(now)
}

// untilProved returns how long it takes until a second observation proves absence.
func (s Subject) untilProved(now time.Time) time.Duration {
	if s.Since.IsZero() || s.Since.After(now) {
		return ProofInterval
	}
	left := s.Since.Add(ProofInterval).Sub(now)
	if !s.Observed.IsZero() {
		left = max(left, s.Observed.Add(ProofInterval).Sub(now))
	}
	return left
}
