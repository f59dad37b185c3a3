// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A Fault is a rule: what it matches, how often, and what happens. All matches that are set must hold. Of the actions
// on requests, Delay, SlowBody and Truncate go together with any other; of the others the first that is set counts, in
// the order they stand here.
type Fault struct {
	ID int `json:"id,omitempty"` // given by Add

	// Operation is a glob over operations as Counters names them ("GET /api/query type=vm", "POST /api/vApp/*"), or,
	// with FailTask, AbortTask or StickTask, over the operationName of tasks ("vdcRecomposeVapp"). A star matches any
	// text, slashes, too: "GET *" is all that is read. "" matches all.
	Operation string `json:"operation,omitempty"`
	// Entity is the id or URN of what the request or task is about, or the name of that vApp, VM, disk, edge gateway,
	// or of what is on a gateway; of what is made on a gateway also the gateway's.
	Entity string `json:"entity,omitempty"`
	// User is who asks: "capvcd" or "capvcd@acme".
	User string `json:"user,omitempty"`
	// Cell is the number of the cell that answers, from 1; 0 is any.
	Cell int `json:"cell,omitempty"`
	// Probability is the share of the matches it applies to, decided by the simulator's seed; 0 is all.
	Probability float64 `json:"probability,omitempty"`
	Skip        int     `json:"skip,omitempty"`  // lets the first matches pass
	Count       int     `json:"count,omitempty"` // then applies so often and is removed; 0 is for ever

	// answer so much later on the simulator's clock; with StickTask end so much later
	Delay      time.Duration `json:"-"`
	Hang       bool          `json:"hang,omitempty"`       // do not answer until the caller gives up
	DropBefore bool          `json:"dropBefore,omitempty"` // close the connection, nothing done
	Busy       BusyText      `json:"busy,omitempty"`       // refuse with BUSY_ENTITY, in one of its two texts
	// Status answers without doing the work. Code and Message have defaults that fit it.
	Status  int               `json:"status,omitempty"`
	Code    string            `json:"code,omitempty"`    // minor error code; also of a task's error
	Message string            `json:"message,omitempty"` // also of a task's error
	Header  map[string]string `json:"header,omitempty"`  // Retry-After …
	Body    BodyKind          `json:"body,omitempty"`
	// EndSession ends the session of the caller, RevokeToken also takes away every API token of that user; both before
	// the work, so that it is refused with 401.
	EndSession  bool `json:"endSession,omitempty"`
	RevokeToken bool `json:"revokeToken,omitempty"`
	DropAfter   bool `json:"dropAfter,omitempty"` // do the work, then close the connection without an answer

	Truncate bool `json:"truncate,omitempty"` // send the first half of the body, then close the connection
	// send the body in pieces over so much time on the simulator's clock
	SlowBody time.Duration `json:"-"`

	FailTask  bool `json:"failTask,omitempty"`  // the matching task ends in error
	AbortTask bool `json:"abortTask,omitempty"` // … ends aborted
	// … keeps running and holds what it locked, for Delay or until it is cancelled
	StickTask bool `json:"stickTask,omitempty"`
}

// BusyText is one of the two texts of BUSY_ENTITY.
type BusyText string

// The texts of BUSY_ENTITY.
const (
	BusyTenant   BusyText = "tenant"   // "Unable to perform this action. Contact your cloud administrator. …"
	BusyProvider BusyText = "provider" // "The entity Ref: … is busy completing an operation …"
)

// BodyKind is the format of a fault's answer; "" is an error as the API that was called writes it.
type BodyKind string

// Kinds of bodies: what VCD writes, and what stands between it and its callers.
const (
	BodyXML   BodyKind = "xml"
	BodyJSON  BodyKind = "json"
	BodyHTML  BodyKind = "html"
	BodyEmpty BodyKind = "empty"
	// BodyNothing is a list without entries: with status 200, a query that finds nothing.
	BodyNothing BodyKind = "nothing"
)

// Faults are the rules of a simulator, asked in order; the first that applies wins.
type Faults struct {
	mu    sync.Mutex
	rules []*Fault
	last  int
	dice  *rand.Rand
}

// New returns no rules; the seed decides about probabilities.
func New(seed int64) *Faults {
	return &Faults{dice: rand.New(rand.NewPCG(uint64(seed), 0x4641))} //nolint:gosec // reproducible on purpose
}

// Add adds a rule and returns its ID.
func (f *Faults) Add(rule Fault) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	rule.ID = f.last
	f.rules = append(f.rules, &rule)
	return rule.ID
}

// Remove removes a rule by its ID and reports whether it was there.
func (f *Faults) Remove(id int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(f.rules), func(r *Fault) bool { return r.ID == id })
	found := len(left) < len(f.rules)
	f.rules = left
	return found
}

// Clear removes all rules.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// List returns the rules that are left, with what is left of their counts.
func (f *Faults) List() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Fault, 0, len(f.rules))
	for _, r := range f.rules {
		out = append(out, *r)
	}
	return out
}

// Take returns the rule that applies, nil if none does.
func (f *Faults) Take(matches func(*Fault) bool) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, rule := range f.rules {
		if !matches(rule) || rule.Probability > 0 && f.dice.Float64() >= rule.Probability {
			continue
		}
		if rule.Skip > 0 {
			rule.Skip--
			continue
		}
		taken := *rule
		if rule.Count == 1 {
			f.rules = slices.Delete(slices.Clone(f.rules), i, i+1)
		} else if rule.Count > 1 {
			rule.Count--
		}
		return &taken
	}
	return nil
}

// Empty reports whether there is no rule.
func (f *Faults) Empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.rules) == 0
}
