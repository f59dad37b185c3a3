// SPDX-License-Identifier: Apache-2.0

// Package plan is the vocabulary between the core of the cloud controller manager and the backends: what a load
// balancer should be, what stands of it, and the steps from one to the other. It is pure and knows no cloud.
package plan

import (
	"errors"
	"fmt"
	"net/netip"
)

// Errors that a backend's errors wrap.
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
	// Refusals explain why the load balancer cannot be as desired. Then there are no steps: what stands stays.
	Refusals []Finding
	// Notices explain what is done otherwise than desired.
	Notices []Finding
	// Intent are the addresses to store on the Service before any step runs; empty if they are stored already.
	Intent []netip.Addr
	// Unused are stored addresses that the load balancer has left; they are set only when nothing else is to do.
	Unused []netip.Addr
	// Steps in their order. Stopping after any of them does no harm.
	Steps []Step
	// Stuck explains what the cloud cannot make, when there are no steps: the load balancer stands, but not as desired.
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

// A Step is one write to the cloud. Only the backend that planned it can run it; running it twice has the effect of
// running it once.
type Step interface {
	// String describes the step for users. It contains no secrets.
	fmt.Stringer
	// Uses returns the addresses and ports that the step takes into use.
	Uses() []Use
	// Deferrable reports whether the step may be left for later, because it removes what several locations share
	// ([Desired.Elsewhere]).
	Deferrable() bool
}

// A Use is an address and port in use, or about to be.
type Use struct {
	Address netip.Addr
	// Protocol and Port; an empty Protocol stands for all, 0 for all ports.
	Protocol Protocol
	Port     int
	// Kind and Name of the object that uses it.
	Kind, Name string
	Owner      Owner
	// Share is the key under which the owner shares the address; empty if it does not.
	Share string
}

// A Finding explains what cannot be as desired.
type Finding struct {
	// Reason in CamelCase, as events have it.
	Reason string
	// Message explains the problem and its remedy. It stays the same as long as nothing changes.
	Message string
}

// Status is what clients can use.
type Status struct {
	// Addresses of the load balancer, in the order of the families; only those that serve all ports.
	Addresses []netip.Addr
	// Ports, in order.
	Ports []PortStatus
	// Objects of the owner that stand.
	Objects []Object
}

// A PortStatus is the status of one port.
type PortStatus struct {
	Protocol Protocol
	Port     int
	// Problem in CamelCase; empty if there is none.
	Problem string
}

// An Object of the cloud belongs to a load balancer.
type Object struct {
	Kind, ID, Name string
	// Addresses of the object, of all families.
	Addresses []netip.Addr
	// Inherited means that a predecessor of this program made the object.
	Inherited bool
}
