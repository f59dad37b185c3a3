// SPDX-License-Identifier: Apache-2.0

// Package lb is the model of a load balancer on an edge gateway, and its planner: what is desired ([Desired]) and
// what is observed ([Observed]) make a [Plan], an ordered list of steps. It is pure: it knows neither Kubernetes
// nor the calls of VCD, and gives the same plan for the same input. A caller observes, makes a plan, runs its steps
// and repeats that until the plan is empty; removal is the plan for [Desired.Absent]. A plan may be interrupted
// after any step: the next one continues from what is observed.
package lb

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Errors that errors of steps wrap.
var (
	// ErrBusy means that VCD is working on the object: try again soon.
	ErrBusy = errors.New("busy")
	// ErrRefused means that VCD needs something changed first: bad input, a missing right, a quota.
	ErrRefused = errors.New("refused")
	// ErrUnknown means that the state is unknown: VCD did not answer, or not completely.
	ErrUnknown = errors.New("unknown")
)

// A Plan is what to do next.
type Plan struct {
	// Needs are facts to observe first. Then there is nothing else in the plan.
	Needs Facts
	// Refusals explain why the load balancer cannot be as desired. Then there are no steps: what exists stays.
	Refusals []Finding
	// Notices explain what is done otherwise than desired.
	Notices []Finding
	// Intent are the addresses to store on the Service before any step runs; empty if they are stored already.
	Intent []netip.Addr
	// Unused are stored addresses that the load balancer has left, when nothing else is to do. They have to be
	// removed from the Service: their next user would be taken for it.
	Unused []netip.Addr
	// Steps in their order. Stopping after any of them does no harm.
	Steps []Step
	// Stuck names what VCD fails to realize, when there are no steps: the load balancer exists, but not as desired.
	Stuck []Finding
	// Wait names what VCD is still working on, when there are no steps; else it is empty.
	Wait string
	// Status of the load balancer as observed.
	Status Status
}

// Done reports whether nothing is left to do.
func (p Plan) Done() bool {
	return p.Needs == 0 && len(p.Refusals) == 0 && len(p.Intent) == 0 && len(p.Steps) == 0 && len(p.Stuck) == 0 &&
		p.Wait == ""
}

// Doubtful reports whether a refusal depends on the settings of the gateway's provider, which are cached for long.
func (p Plan) Doubtful() bool {
	return slices.ContainsFunc(p.Refusals, func(f Finding) bool {
		return slices.Contains([]string{AddressOutside, NoFreeAddress, NoEngineGroup, Unsupported}, f.Reason)
	})
}

// A Finding explains what cannot be as desired.
type Finding struct {
	// Reason in CamelCase, one of the constants of this package.
	Reason string
	// Message explains the problem and its remedy. It stays the same as long as nothing changes.
	Message string
}

// Status is what clients can use.
type Status struct {
	// Addresses of the load balancer, in the order of the families; only those that all listeners have.
	Addresses []netip.Addr
	// Ready is set if everything is as desired.
	Ready bool
	// Ports, in order.
	Ports []PortStatus
	// Objects of the owner.
	Objects []ObjectStatus
}

// A PortStatus is that of one listener.
type PortStatus struct {
	Protocol Protocol
	Port     int
	// Problem in CamelCase, empty if there is none.
	Problem string
	// Health of the virtual service in VCD's words; it does not keep the address from being published.
	Health string
}

// An ObjectStatus names an object.
type ObjectStatus struct {
	Kind     Kind
	ID, Name string
	// Addresses of a virtual service, an address or a rule.
	Addresses []netip.Addr
	// Old is set if cloud provider interface 1.6.1 named it.
	Old bool
}

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
	Kind Kind
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

// Uses returns the addresses and ports that the step takes into use for clients.
func (s Step) Uses() []Use {
	switch {
	case s.Service != nil:
		m, _ := ParseMarker(s.Service.Description)
		return s.Service.Uses(s.Name, m)
	case s.Rule != nil:
		m, _ := ParseMarker(s.Rule.Description)
		return []Use{{Address: s.Rule.External, Port: s.Rule.ExternalPort, Kind: KindRule, Name: s.Name, Marker: m}}
	}
	return nil
}

// Deferrable reports whether the step may be left for later, because it removes an object of the organization, which
// the owner may use at other gateways as well.
func (s Step) Deferrable() bool { return s.Verb == Delete && !s.Kind.OnGateway() }

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
		return fmt.Sprintf("%d ranges may reach %s", len(s.Firewall.Sources), s.Firewall.Destination)
	}
	return ""
}

// String returns where the pool sends to.
func (s Pool) String() string {
	if s.Group != (Ref{}) {
		return fmt.Sprintf("node port %d of IP set %s", s.NodePort, s.Group.Name)
	}
	return fmt.Sprintf("node port %d of %d members", s.NodePort, len(s.Members))
}

func join(addresses []netip.Addr) string {
	words := make([]string, 0, len(addresses))
	for _, a := range addresses {
		words = append(words, a.String())
	}
	return strings.Join(words, " and ")
}

// Reasons of refusals and notices.
const (
	// NoPorts: the Service has no ports that could be balanced.
	NoPorts = "NoPorts"
	// BadPort: a port is invalid, has no node port, or is there twice.
	BadPort = "BadPort"
	// BadFamilies: a family of addresses is asked for that does not fit the rest.
	BadFamilies = "BadFamilies"
	// NoMembers: no node has an address of the family.
	NoMembers = "NoMembers"
	// TooManyMembers: only some of the nodes are members.
	TooManyMembers = "TooManyMembers"
	// Unsupported: the gateway, the version of the API or the rights of the user do not allow it.
	Unsupported = "Unsupported"
	// CertificateMissing: TLS is asked for without a certificate.
	CertificateMissing = "CertificateMissing"
	// CertificateUnknown: the library has no certificate of this alias, or several.
	CertificateUnknown = "CertificateUnknown"
	// BadRange: a range or subnet of addresses is missing or invalid.
	BadRange = "BadRange"
	// AddressTaken: the address is another's.
	AddressTaken = "AddressTaken"
	// AddressOutside: the address is not one of the gateway's.
	AddressOutside = "AddressOutside"
	// NoFreeAddress: no address is left.
	NoFreeAddress = "NoFreeAddress"
	// PortTaken: another virtual service or rule has this port of the address.
	PortTaken = "PortTaken"
	// NoEngineGroup: the gateway has no service engine group, not the one asked for, or none with room.
	NoEngineGroup = "NoEngineGroup"
	// RealizationFailed: VCD could not make something, and neither when it was asked again.
	RealizationFailed = "RealizationFailed"
	// NotProvablyOurs: objects with a name of cloud provider interface 1.6.1 may be another Service's.
	NotProvablyOurs = "NotProvablyOurs"
	// OtherClusterID: the Service has something under another id of the cluster.
	OtherClusterID = "OtherClusterID"
	// AddressShared: others use the address, too, and it cannot be given back.
	AddressShared = "AddressShared"
)
