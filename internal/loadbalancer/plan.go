// SPDX-License-Identifier: Apache-2.0

// Package loadbalancer is the vocabulary of load balancers that the cloud controller manager, its clouds, the
// controllers and the tools share: whose a load balancer is, what it should be, what exists of it, and the plan from
// one to the other. It is pure and knows no cloud.
package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
)

// Errors that the errors of a cloud wrap.
var (
	// ErrBusy means that the cloud is working on the object: try again soon.
	ErrBusy = errors.New("busy")
	// ErrRefused means that the cloud needs something changed first: bad input, a missing right, a quota.
	ErrRefused = errors.New("refused")
	// ErrUnknown means that the state is unknown: the cloud did not answer, or not completely.
	ErrUnknown = errors.New("unknown")
)

// A Plan is what to do next.
type Plan struct {
	// Refusals explain why the load balancer cannot be as desired. Then there are no steps: what exists stays.
	Refusals []Finding
	// Notices explain what is done otherwise than desired.
	Notices []Finding
	// Intent are the addresses to store for the owner before any step runs; empty if they are stored already.
	Intent []netip.Addr
	// Unused are stored addresses that the load balancer has left; they are set only when nothing else is to do. They
	// have to be removed from the store: their next user would be taken for the owner.
	Unused []netip.Addr
	// Steps in their order. Stopping after any of them does no harm.
	Steps []Step
	// Stuck explains what the cloud cannot make, when there are no steps: the load balancer exists, but not as desired.
	Stuck []Finding
	// Wait names what the cloud is still working on, when there are no steps; else it is empty.
	Wait string
	// Status of the load balancer as observed.
	Status Status
}

// Done reports whether nothing is left to do.
func (p Plan) Done() bool {
	return len(p.Refusals) == 0 && len(p.Intent) == 0 && len(p.Steps) == 0 && len(p.Stuck) == 0 && p.Wait == ""
}

// Ends reports whether nothing can be carried out: nothing is left to do, or something else has to happen first.
func (p Plan) Ends() bool {
	return p.Done() || len(p.Refusals) > 0 || len(p.Stuck) > 0 || p.Wait != ""
}

// A Step is one write to the cloud. Only the cloud that planned it can run it; running it twice has the effect of
// running it once.
type Step interface {
	// String describes the step for users. It contains no secrets.
	fmt.Stringer
	// Uses returns the addresses and ports that the step takes into use for clients.
	Uses() []Use
	// Deferrable reports whether the step may be left for later, because it removes what several locations share
	// ([Desired.Elsewhere]).
	Deferrable() bool
}

// A Finding explains what cannot be as desired.
type Finding struct {
	// Reason in CamelCase, as events have it.
	Reason string
	// Message explains the problem and its remedy. It stays the same as long as nothing changes.
	Message string
}
