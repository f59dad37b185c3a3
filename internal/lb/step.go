// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Verb is the operation of a step.
type Verb string

// Verbs.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
	// Mark writes the description of a claim.
	Mark Verb = "mark"
)

// A Step is one idempotent write. Creating an object that exists with the same name and owner succeeds (for an address,
// only if it was Stored), and so does deleting an object that no longer exists. The field of the step's kind contains
// the object to write. It is not set for Delete, except for an address.
type Step struct {
	Verb Verb
	Kind loadbalancer.Kind
	// Name of the object. A new object gets this name.
	Name string
	// ID of the object; empty for Create.
	ID string
	// Repair is set on an Update of an object that VCD failed to realize. It is written even if it matches the desired
	// state.
	Repair bool

	// Address is allocated (Create), described and marked as used (Mark), or marked as unused and released, unless VCD
	// uses it (Delete).
	Address *Claim
	// Stored is set on Create if the address was recorded for the Service before this plan was computed. Then an
	// unmarked allocation may come from a previous run.
	Stored bool
	// FormerDescription of a claim, for Mark. Any other description that was written in the meantime is kept.
	FormerDescription string
	Certificate       *CertificateItem
	Set               *Set
	// Pool is the desired pool. An update keeps all properties that a Pool does not have, the algorithm if it is empty,
	// the settings of monitors of the same type, and monitors of other types except for FormerMonitors.
	Pool           *Pool
	FormerMonitors []Monitor
	// Service, Profile and Rule are the desired objects. An update keeps all properties that they do not have.
	Service *VirtualService
	Profile *Profile
	Rule    *Rule
	// Firewall is a rule that is created before all others, and never updated.
	Firewall *FirewallRule
}

// Uses implements [loadbalancer.Step].
func (s Step) Uses() []loadbalancer.Use {
	switch {
	case s.Service != nil:
		m, _ := ParseMarker(s.Service.Description)
		return s.Service.Uses(s.Name, m)
	case s.Rule != nil:
		m, _ := ParseMarker(s.Rule.Description)
		use := useOf(KindRule, s.Name, m)
		use.Address = s.Rule.External
		use.Port = s.Rule.ExternalPort
		use.Protocol = protocolOf(m.Listener)
		return []loadbalancer.Use{use}
	}
	return nil
}

// Deferrable reports whether the step may be postponed, because it removes an object of the organization that the owner
// may also use on other gateways.
func (s Step) Deferrable() bool { return s.Verb == Delete && !OnGateway(s.Kind) }

// String describes the step for users. It contains no secrets.
func (s Step) String() string {
	what := fmt.Sprintf("%s %s %s", s.Verb, s.Kind, s.Name)
	if d := s.detail(); d != "" {
		what += " (" + d + ")"
	}
	return what
}

// detail returns the most relevant data of a step for readers of the plan.
func (s Step) detail() string {
	switch {
	case s.Address != nil:
		return "in " + s.Address.Space.Name
	case s.Set != nil:
		return fmt.Sprintf("%d addresses", len(s.Set.Members))
	case s.Pool != nil:
		return s.Pool.String()
	case s.Service != nil:
		return fmt.Sprintf("%s port %d on %s", s.Service.Application, s.Service.Port, join(s.Service.VIPs))
	case s.Rule != nil:
		return fmt.Sprintf("%s port %d to %s", s.Rule.External, s.Rule.ExternalPort, s.Rule.Internal)
	case s.Profile != nil:
		return fmt.Sprintf("%s port %d", s.Profile.Protocol, s.Profile.Port)
	case s.Firewall != nil:
		return fmt.Sprintf("allow %d ranges to reach %s", len(s.Firewall.Sources), s.Firewall.Destination)
	}
	return ""
}
