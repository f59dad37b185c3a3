// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A Fault is a rule: the requests or tasks that it matches, how often it applies, and its effects. All matches that are
// set must hold. Of the effects on requests, Delay, SlowBody and Truncate can be combined with any other. Of the others
// only the first that is set applies, in the order of the fields.
type Fault struct {
	ID int `json:"id,omitempty"` // set by Add

	// Operation is a glob that matches operations as named by Counters ("GET /api/query type=vm", "POST /api/vApp/*").
	// With FailTask, AbortTask or StickTask it matches the operationName of tasks ("vdcRecomposeVapp"). A star matches
	// any text including slashes: "GET *" matches all reads. "" matches everything.
	Operation string `json:"operation,omitempty"`
	// Entity is the ID or URN of the object of the request or task. It may also be the name of a vApp, VM, disk, edge
	// gateway, or object on a gateway. A rule for a gateway also matches requests that create objects on it.
	Entity string `json:"entity,omitempty"`
	// User is the name of the caller: "capvcd" or "capvcd@acme".
	User string `json:"user,omitempty"`
	// Cell is the number of the serving cell, from 1. 0 matches all cells.
	Cell int `json:"cell,omitempty"`
	// Probability is the fraction of the matches that the rule applies to, derived from the simulator's seed. 0 means
	// all.
	Probability float64 `json:"probability,omitempty"`
	Skip        int     `json:"skip,omitempty"`  // number of matches that pass before the rule applies
	Count       int     `json:"count,omitempty"` // number of times to apply before removal; 0 is unlimited

	// Delay delays the response on the simulator's clock, or with StickTask the end of the task.
	Delay      time.Duration `json:"-"`
	Hang       bool          `json:"hang,omitempty"`       // do not respond until the client disconnects
	DropBefore bool          `json:"dropBefore,omitempty"` // close the connection before the handler runs
	Busy       BusyText      `json:"busy,omitempty"`       // refuse with BUSY_ENTITY, in one of its two texts
	// Status is the status of a response that replaces the handler. Code and Message have defaults that match it.
	Status  int               `json:"status,omitempty"`
	Code    string            `json:"code,omitempty"`    // minor error code; also for the error of a task
	Message string            `json:"message,omitempty"` // also for the error of a task
	Header  map[string]string `json:"header,omitempty"`  // Retry-After …
	Body    BodyKind          `json:"body,omitempty"`
	// EndSession ends the session of the caller. RevokeToken also revokes every API token of the user. Both happen
	// before the handler runs, so the request fails with 401.
	EndSession  bool `json:"endSession,omitempty"`
	RevokeToken bool `json:"revokeToken,omitempty"`
	DropAfter   bool `json:"dropAfter,omitempty"` // run the handler, then close the connection without a response

	Truncate bool `json:"truncate,omitempty"` // send the first half of the body, then close the connection
	// SlowBody sends the body in pieces over this time on the simulator's clock.
	SlowBody time.Duration `json:"-"`

	FailTask  bool `json:"failTask,omitempty"`  // the matching task fails
	AbortTask bool `json:"abortTask,omitempty"` // the matching task is aborted
	// StickTask keeps the matching task running with its locks, for Delay or until it is canceled.
	StickTask bool `json:"stickTask,omitempty"`
}

// BusyText is one of the two texts of BUSY_ENTITY.
type BusyText string

// The texts of BUSY_ENTITY.
const (
	BusyTenant   BusyText = "tenant"   // "Unable to perform this action. Contact your cloud administrator. …"
	BusyProvider BusyText = "provider" // "The entity Ref: … is busy completing an operation …"
)

// BodyKind is the format of a fault's response. "" is an error in the format of the API that was called.
type BodyKind string

// Kinds of bodies: those of VCD, and those of proxies between VCD and its clients.
const (
	BodyXML   BodyKind = "xml"
	BodyJSON  BodyKind = "json"
	BodyHTML  BodyKind = "html"
	BodyEmpty BodyKind = "empty"
	// BodyNothing is an empty list. With status 200 it is a query without results.
	BodyNothing BodyKind = "nothing"
)

// Faults are the rules of a simulator, evaluated in order. The first rule that applies wins.
type Faults struct {
	mu    sync.Mutex
	rules []*Fault
	last  int
	dice  *rand.Rand
}

// New returns an empty list of rules. The seed determines the results of probabilities.
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

// Remove removes a rule by its ID and reports whether it existed.
func (f *Faults) Remove(id int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	remaining := slices.DeleteFunc(slices.Clone(f.rules), func(r *Fault) bool { return r.ID == id })
	found := len(remaining) < len(f.rules)
	f.rules = remaining
	return found
}

// Clear removes all rules.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// List returns the remaining rules with their remaining counts.
func (f *Faults) List() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Fault, 0, len(f.rules))
	for _, r := range f.rules {
		out = append(out, *r)
	}
	return out
}

// Take returns the rule that applies, or nil if none does, and updates its counts.
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

// Empty reports whether there are no rules.
func (f *Faults) Empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.rules) == 0
}
