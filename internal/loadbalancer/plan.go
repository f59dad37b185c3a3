// SPDX-License-Identifier: Apache-2.0

// Package loadbalancer contains the load balancer types that the cloud controller manager, its clouds, the controllers
// and the tools share: the owner of a load balancer, its desired state, its observed state, and the plan from one to
// the other. It is pure, and has no code for a specific cloud.
package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
)

// Errors that the errors of a cloud wrap.
var (
	// ErrBusy means that the cloud is working on the object. The caller should retry soon.
	ErrBusy = errors.New("busy")
	// ErrRefused means that a change is required first, for example of invalid input, a missing right or a quota.
	ErrRefused = errors.New("refused")
	// ErrUnknown means that the state is unknown, because the cloud did not respond, or not completely.
	ErrUnknown = errors.New("unknown")
)

// A Plan contains the next steps for a load balancer.
type Plan struct {
	// Refusals explain why the desired state is impossible. Then there are no steps, and existing objects are kept.
	Refusals []Finding
	// Notices explain deviations from the desired state.
	Notices []Finding
	// Intent are the addresses to record for the owner before any step runs. It is empty if they are already recorded.
	Intent []netip.Addr
	// Unused are recorded addresses that the load balancer no longer uses. They are set only when nothing else is left
	// to do. The caller must remove them from the record, because their next user would be mistaken for the owner.
	Unused []netip.Addr
	// Steps are the steps in order. Stopping after any of them is safe.
	Steps []Step
	// Stuck explains what the cloud cannot create, if there are no steps. The load balancer exists, but deviates from
	// the desired state.
	Stuck []Finding
	// Wait names the work that is in progress in the cloud, if there are no steps. Otherwise it is empty.
	Wait string
	// Status is the observed status of the load balancer.
	Status Status
}

// Done reports whether nothing is left to do.
func (p Plan) Done() bool {
	return len(p.Refusals) == 0 && len(p.Intent) == 0 && len(p.Steps) == 0 && len(p.Stuck) == 0 && p.Wait == ""
}

// Ends reports whether the plan cannot be executed, because nothing is left to do or something else must happen
// first.
func (p Plan) Ends() bool {
	return p.Done() || len(p.Refusals) > 0 || len(p.Stuck) > 0 || p.Wait != ""
}

// A Step is one idempotent write to the cloud. Only the cloud that planned it can run it.
type Step interface {
	// String describes the step for users. It contains no secrets.
	fmt.Stringer
	// Uses returns the addresses and ports that clients can use after the step.
	Uses() []Use
	// Deferrable reports whether the step may be postponed, because it removes an object that several locations share
	// ([Desired.Elsewhere]).
	Deferrable() bool
}

// A Finding explains a problem.
type Finding struct {
	// Reason in CamelCase, as used in events.
	Reason string
	// Message explains the problem and its remedy. It does not change while the state is unchanged.
	Message string
}
