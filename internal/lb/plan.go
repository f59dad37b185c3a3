package lb

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Errors by which those who run steps tell why one could not be done.
var (
	// ErrBusy is for what VCD is working on: try again soon.
	ErrBusy = errors.New("busy")
	// ErrRefused is for what VCD will not do until somebody changes something: bad input, a missing right, a quota.
	ErrRefused = errors.New("refused")
	// ErrUnknown is for what cannot be said: VCD did not answer, or not completely.
	ErrUnknown = errors.New("unknown")
)

// A Plan is what to do next.
type Plan struct {
	// Needs are facts to be observed first. Then there is nothing else in the plan.
	Needs Facts
	// Refusals say why what is wanted cannot be. Then there are no steps at all: nothing half-built stands, what stands stays.
	Refusals []Finding
	// Notices say what is done otherwise than wanted.
	Notices []Finding
	// Intent are the addresses to write down on the Service before any step runs; empty if they are there already.
	Intent []netip.Addr
	// Unused are addresses that were written down on the Service and that it has left, all else being done: to be taken off it. Whoever gets
	// them next would be taken for us.
	Unused []netip.Addr
	// Steps in their order. To stop after any of them does no harm.
	Steps []Step
	// Stuck says what VCD cannot make, however often it is asked, when there are no steps: the load balancer stands, but not as wanted.
	Stuck []Finding
	// Wait says what VCD is still working on, when there are no steps and the work is not done; else it is empty.
	Wait string
	// Status of the load balancer as observed.
	Status Status
}

// Done says whether nothing is left to do.
func (p Plan) Done() bool {
	return p.Needs == 0 && len(p.Refusals) == 0 && len(p.Intent) == 0 && len(p.Steps) == 0 && len(p.Stuck) == 0 && p.Wait == ""
}

// Doubtful says whether a refusal depends on what the provider of the gateway set up, which is seldom looked at.
func (p Plan) Doubtful() bool {
	return slices.ContainsFunc(p.Refusals, func(f Finding) bool {
		return slices.Contains([]string{AddressOutside, NoFreeAddress, NoEngineGroup, Unsupported}, f.Reason)
	})
}

// A Finding says what cannot be as wanted.
type Finding struct {
	// Reason in CamelCase, one of the constants of this package.
	Reason string
	// Message says what and what to do about it. It is the same as long as nothing changes.
	Message string
}

// Status is what clients can use.
type Status struct {
	// Addresses of the load balancer, in the order of the families; only those that all listeners have.
	Addresses []netip.Addr
	// Ready says that everything stands as wanted.
	Ready bool
	// Ports, in order.
	Ports []PortStatus
	// Objects of the owner that stand.
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

// An ObjectStatus names an object that stands.
type ObjectStatus struct {
	Kind     Kind
	ID, Name string
	// Address of a virtual service.
	Address netip.Addr
	// Old says that cloud provider interface 1.6.1 named it.
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

// A Step is one write. Running it twice has the effect of running it once: creating what exists under the same name for the same
// owner, or deleting what is gone, succeeds. The object of the step's kind is set and carries what is to be written; none for Delete,
// but for an address.
type Step struct {
	Verb Verb
	Kind Kind
	// Name of the object, also the one it is created with.
	Name string
	// ID of the object; empty for Create.
	ID string
	// Repair is set on an Update of an object that VCD has failed to realize: it is written even if it is as desired.
	Repair bool

	// Address is to be allocated (Create), described and marked as used (Mark), or marked as unused and released unless VCD
	// uses it (Delete).
	Address *Claim
	// FormerDescription of a claim, for Mark: another one that was written meanwhile stays.
	FormerDescription string
	Certificate       *CertificateItem
	Set               *Set
	// Pool as it should be; an update keeps everything that a Pool does not have, its algorithm if that is empty, the settings of
	// monitors of the same type, and monitors of other types but for FormerMonitors.
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

// Deferrable reports whether the step may be left for later, because it is on an object of the organization, which other gateways
// may use as well.
func (s Step) Deferrable() bool { return !s.Kind.OnGateway() }

// String returns what the step does, for people. It tells no secrets.
func (s Step) String() string {
	what := fmt.Sprintf("%s %s %s", s.Verb, s.Kind, s.Name)
	if d := s.detail(); d != "" {
		what += " (" + d + ")"
	}
	return what
}
