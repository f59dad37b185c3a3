// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Verb is what a step does.
type Verb string

// Verbs.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
	// Mark writes the description of a claim.
	Mark Verb = "mark"
)

// A Step is one write. Running it twice has the effect of running it once: creating what exists under the same name
// for the same owner (of an address: if it was Stored), or deleting what is gone, succeeds. The object of the step's
// kind is set and carries what is to be written; none for Delete, but for an address.
type Step struct {
	Verb Verb
	Kind loadbalancer.Kind
	// Name of the object, also the one it is created with.
	Name string
	// ID of the object; empty for Create.
	ID string
	// Repair is set on an Update of an object that VCD has failed to realize: it is written even if it is as desired.
	Repair bool

	// Address is to be allocated (Create), described and marked as used (Mark), or marked as unused and released
	// unless VCD uses it (Delete).
	Address *Claim
	// Stored is set on Create if the address was stored on the Service before this plan was made: what is allocated
	// and not marked may be a former run's.
	Stored bool
	// FormerDescription of a claim, for Mark: another one that was written meanwhile stays.
	FormerDescription string
	Certificate       *CertificateItem
	Set               *Set
	// Pool as it should be; an update keeps everything that a Pool does not have, its algorithm if that is empty,
	// the settings of monitors of the same type, and monitors of other types but for FormerMonitors.
	Pool           *Pool
	FormerMonitors []Monitor
	// Service, Profile and Rule as they should be; an update keeps everything that they do not have.
	Service *VirtualService
	Profile *Profile
	Rule    *Rule
	// Firewall rules are created before all others, and never updated.
	Firewall *FirewallRule
}

// Uses implements [loadbalancer.Step]. Whether an address is inside the organization is left out, as it is of addresses
// that other Services keep: internal load balancers share only what exists.
func (s Step) Uses() []loadbalancer.Use {
	switch {
	case s.Service != nil:
		m, _ := ParseMarker(s.Service.Description)
		m.Via = ViaItself
		return s.Service.Uses(s.Name, m)
	case s.Rule != nil:
		m, _ := ParseMarker(s.Rule.Description)
		use := useOf(KindRule, s.Name, m)
		use.Address = s.Rule.External
		use.Port = s.Rule.ExternalPort
		return []loadbalancer.Use{use}
	}
	return nil
}

// Deferrable reports whether the step may be left for later, because it removes an object of the organization, which
// the owner may use at other gateways as well.
func (s Step) Deferrable() bool { return s.Verb == Delete && !OnGateway(s.Kind) }

// String describes the step for users. It contains no secrets.
func (s Step) String() string {
	what := fmt.Sprintf("%s %s %s", s.Verb, s.Kind, s.Name)
	if d := s.detail(); d != "" {
		what += " (" + d + ")"
	}
	return what
}

// detail is what matters of a step to a reader of the plan.
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
