// SPDX-License-Identifier: Apache-2.0

// Package gone decides whether an object that a cloud no longer shows is gone. It makes no requests and is independent
// of the cloud: callers gather the evidence.
package gone

import "time"

const (
	// ProofInterval is the minimum time between two observations that together prove absence: a minute, plus a second
	// because annotations store times without fractions.
	ProofInterval = 61 * time.Second
	// LateRequest is how long a request whose response was lost may still create the object.
	LateRequest = 5 * time.Minute
	// logKept is the minimum time that a cloud keeps its task log.
	logKept = 24 * time.Hour
	// siteCheck is how long the first missing machine waits for observations of the other clusters of its site.
	siteCheck = 15 * time.Second
)

// Evidence is the result of the requests about a subject. Clients of clouds gather it in values with the same fields.
type Evidence struct {
	Shown          bool // a read by ID succeeded
	Listed         bool // a query for the ID found it
	ScopeShown     bool // the account sees its scope, the part of the cloud that contained it, such as the VDC
	ScopeGone      bool // the account sees all scopes, and its scope is not among them
	HomeShown      bool // the account sees its home, the container that grants access to it, such as the vApp
	HomeHolds      bool // its home lists it
	SiblingsHidden bool // other objects of the cluster are known, and none of those that were queried is shown
	SeesAll        bool // the account sees all containers of all owners, and one in the same scope
	Logged         bool // the log of the cloud has tasks that worked on it
	Deleted        bool // according to the log, it or its container was deleted
}

// A Subject is an object that may be gone.
type Subject struct {
	Missing
	Evidence Evidence

	// Unrecorded means that its creation was requested, but its ID was never recorded.
	Unrecorded bool
	// Requested is when its creation was last requested; zero if that is long ago.
	Requested time.Time
	// DeleteRequested means that this program requested its deletion.
	DeleteRequested bool
	// Observed is when this process first found it missing; zero if another process did. Unlike Since, it comes from a
	// clock that does not jump.
	Observed time.Time
	// Born is a time at which it certainly existed; zero if that is long ago.
	Born time.Time
}

// A Site describes the other missing machines of a site, and its state.
type Site struct {
	Missing      []Missing // of all clusters of the site, without the subject
	Machines     int       // of the subject's cluster that have or had a VM
	Released     time.Time // when a machine of the cluster was last declared gone
	Acknowledged time.Time // a user confirmed that machines missing since before then are gone
	Stopped      bool      // a cluster of the site was stopped after Acknowledged
	Neighbors    bool      // other clusters of the site have machines
	NotifiedAt   time.Time // when these were last made to observe their machines; zero: never
}

// A State is the outcome of a decision. The zero value is the safe one.
type State int

// States.
const (
	Unknown  State = iota // the evidence proves nothing
	Present               // it exists
	Waiting               // decide again later
	HeldBack              // proved gone, but so are suspiciously many others: decide again later
	Stopped               // machines of other clusters are missing too: a user must acknowledge it
	Gone
)

// A Reason explains the states Unknown and Waiting.
type Reason int

// Reasons.
const (
	Listed         Reason = iota + 1 // it is listed but cannot be read
	HeldByHome                       // its container lists it
	ScopeHidden                      // the account does not even see the scope
	HomeHidden                       // the account sees neither its container nor a log of its deletion
	SiblingsHidden                   // the account sees nothing of the cluster
	// Unlogged: it existed less than a day ago, but the log has no record of it. The cloud may have been restored.
	Unlogged
	Once       // it was observed missing once
	AskingSite // other clusters of the site observe theirs first
	Creating   // a request to create it may still be in progress
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

// String explains the reason to users.
func (r Reason) String() string { return reasons[r] }

// A Verdict is the decision about a subject.
type Verdict struct {
	State  State
	Reason Reason
	After  time.Duration // when to decide again, for Waiting and HeldBack
	// Counts reports whether the observation counts as proof. If it does not, earlier observations no longer count
	// either.
	Counts bool
}

// Decide decides after an observation whether a subject is gone. If site is nil, nothing holds the subject back,
// because it is a container or because no ID is recorded.
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

// unlogged reports whether the log of the cloud has no record of the subject although the log goes back far enough.
func (s Subject) unlogged(now time.Time) bool {
	return !s.Born.IsZero() && now.Sub(s.Born) <= logKept && !s.Evidence.Logged
}

func counted(state State) Verdict { return Verdict{State: state, Counts: true} }

// judge judges one observation. It counts if everything that must be visible is visible, except for the subject.
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

// judgeSurroundings judges one observation of a subject that no list contains.
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

// untilRequestsEnd returns how long a request may still create the subject. No request can create it if its scope is
// gone. A request time in the future comes from a wrong clock and is ignored.
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
