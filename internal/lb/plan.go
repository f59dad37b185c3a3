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

// A Step is one write. To run it twice is to run it once: to create what is there under the same name with the same owner, or to delete what is gone,
// is success. Exactly the specification of its kind is set; none for Delete.
type Step struct {
	Verb Verb
	Kind Kind
	// Name of the object, also the one it is created with.
	Name string
	// ID of the object; empty for Create.
	ID string
	// Repair says of an Update that VCD has given the object up: it is written even if it is as wanted.
	Repair bool

	Address     *AddressSpec
	Certificate *CertificateSpec
	Set         *SetSpec
	Pool        *PoolSpec
	Service     *ServiceSpec
	Profile     *ProfileSpec
	Rule        *RuleSpec
	Firewall    *FirewallSpec
}

// String returns what the step does, for people. It tells no secrets.
func (s Step) String() string {
	what := fmt.Sprintf("%s %s %s", s.Verb, s.Kind, s.Name)
	if d := s.detail(); d != "" {
		what += " (" + d + ")"
	}
	return what
}

// An AddressSpec is for Create (allocate this value), Mark (write the description and that it is in use) and Delete (take both back and
// release it: only if VCD says that nothing uses it).
type AddressSpec struct {
	Space       Ref
	Value       netip.Addr
	Description string
	// Former is what was written there before, for Mark: what somebody else has written meanwhile stays.
	Former string
}

// A CertificateSpec is a certificate to import; the step's Name is its alias.
type CertificateSpec struct{ Description, Chain, Key string }

// A SetSpec is an IP set.
type SetSpec struct {
	Description string
	Members     []netip.Addr
	// Edition of the wish ([Desired.Edition]). A set that a wish of a higher one has written stays as it is.
	Edition uint64
}

// A PoolSpec is what is ours of a pool. An update reads the pool and changes nothing else.
type PoolSpec struct {
	Description string
	NodePort    int
	// Group is the IP set whose addresses are the members, or Members are listed; the other one is empty.
	Group   Ref
	Members []netip.Addr
	// Probes, none of type NONE. An update keeps the settings of what it finds of the same type, and what people added of other types, but for
	// Former, which was ours.
	Probes []Health
	Former []Monitor
	// Sticky sets persistence by client address; else such persistence is removed and any other kept.
	Sticky bool
	// Algorithm; empty leaves it, a new pool gets ROUND_ROBIN.
	Algorithm string
}

// A ServiceSpec is what is ours of a virtual service. An update changes nothing else.
type ServiceSpec struct {
	Description string
	VIPs        []netip.Addr
	Protocol    Protocol
	Port        int
	Application Application
	SSL         bool
	Certificate Ref
	Pool        Ref
	EngineGroup Ref
	Transparent bool
}

// A ProfileSpec is an application port profile.
type ProfileSpec struct {
	Description string
	Protocol    Protocol
	Port        int
}

// A RuleSpec is a DNAT rule.
type RuleSpec struct {
	Description        string
	External, Internal netip.Addr
	ExternalPort       int
	Profile            Ref
}

// A FirewallSpec is a rule on one address and protocol: it lets Sources reach the load balancer, or, without Sources, keeps everybody away. A new
// rule comes before all that are there: plans create the one that keeps away first. Rules are created and deleted, never updated.
type FirewallSpec struct {
	Description string
	Sources     []netip.Prefix
	Destination netip.Addr
	Protocol    Protocol
	Ports       []int
}
