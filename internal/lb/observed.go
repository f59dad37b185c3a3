package lb

import "net/netip"

// Facts are things about a gateway that not every plan needs to know; each costs requests. A plan that lacks some says so
// ([Plan.Needs]); whoever runs it observes again.
type Facts uint

// Facts.
const (
	// Addresses: Gateway.Ranges, Gateway.Used, Gateway.Spaces.
	Addresses Facts = 1 << iota
	// EngineGroups: Gateway.Groups.
	EngineGroups
	// Certificates: Observed.Certificates. Who may not look into the library has put nothing there: then it is known to be empty.
	Certificates
	// Forwardings: Observed.Rules, Observed.Profiles, and the NAT rules in Observed.Taken.
	Forwardings
	// Firewall: Observed.Firewall.
	Firewall
	// FullPools: the owner's pools were all read in full.
	FullPools
	// FullSets: the cluster's IP sets were all read in full.
	FullSets
)

// Has says whether all of the asked facts are known.
func (f Facts) Has(asked Facts) bool { return f&asked == asked }

// A Query says what to observe.
type Query struct {
	Owner Owner
	// Facts to learn besides the virtual services, pools, sets and claims, which always are observed.
	Facts Facts
	// Translated says that load balancers are reached through DNAT rules here: that the user may see none is no proof that there are none.
	Translated bool
	// Fresh asks for what was read after the query was made; else something a little older will do.
	Fresh bool
}

// A State is where VCD is with an object.
type State string

// States.
const (
	Realized State = "REALIZED"
	// Pending is what VCD is working on.
	Pending State = "PENDING"
	// Failed is what VCD has given up on (REALIZATION_FAILED).
	Failed State = "FAILED"
	// Broken is what is Failed though it was written again just now: it is left alone for a while.
	Broken State = "BROKEN"
)

// Observed is what there is of an owner, complete, and what of the gateway its plan depends on. Objects of the owner are there also when
// half-built, pending or failed, and those whose name alone says that they may be its ([OldName]).
type Observed struct {
	// Known facts. What is not known is empty below.
	Known   Facts
	Gateway Gateway

	Services     []VirtualService
	Pools        []Pool
	Sets         []Set // of the whole cluster
	Claims       []Claim
	Rules        []Rule
	Profiles     []Profile
	Certificates []CertificateItem // the owner's, and those of nobody: people's
	Firewall     []FirewallRule

	// Taken is what others, of this cluster too, have on the gateway: virtual services and, if Forwardings are known, both sides of DNAT rules.
	Taken []Use
	// Strays are objects with the UID of the owner and the id of another cluster: the cluster had another id, or is a copy.
	Strays []Stray
	// Others says that other Services of the cluster have something on the gateway.
	Others bool
}

// A Stray is an object of the owner under another id of its cluster.
type Stray struct{ Cluster, Name string }

// StrayOf returns what an object is of an owner under another id of its cluster, if it is that. UIDs of Services are in no cluster twice.
func StrayOf(o Owner, name, description string) (Stray, bool) {
	m, ok := ParseMarker(description)
	return Stray{m.Owner.Cluster, name}, ok && o.UID != "" && m.Owner.UID == o.UID && m.Owner.Cluster != o.Cluster
}

// A Gateway is an edge gateway.
type Gateway struct {
	ID, Name string
	// Ranges are the external addresses that the gateway has for itself, of all uplinks.
	Ranges []Range
	// Used are the external addresses that VCD lists as used, by the owner too.
	Used []UsedAddress
	// Spaces are the IP Spaces whose floating IPs the gateway can use; empty without IP Spaces.
	Spaces []Space
	// UsesSpaces says that there are some. It is always known.
	UsesSpaces bool
	// Groups are the service engine groups assigned to the gateway.
	Groups []EngineGroup
}

// A UsedAddress is an address that VCD lists as used, for what, in VCD's words (PRIMARY_IP, SNAT, DNAT, Load_Balancer, …).
type UsedAddress struct {
	Address  netip.Addr
	Category string
}

// A Space is an IP Space.
type Space struct {
	ID, Name string
	// Ranges of its floating IPs.
	Ranges []Range
	// Free are some that could be allocated, in order.
	Free []netip.Addr
	// Full says that the organisation may have no more of its addresses.
	Full bool
}

// An EngineGroup is a service engine group assigned to the gateway.
type EngineGroup struct {
	ID, Name string
	// Deployed virtual services, and how many are allowed.
	Deployed, Max int
}

// An Object is what all objects have.
type Object struct {
	ID, Name, Description string
	State                 State
}

// A VirtualService as lists show it.
type VirtualService struct {
	Object
	Enabled bool
	// VIPs are its addresses, one for each family at most.
	VIPs        []netip.Addr
	Protocol    Protocol
	Port        int
	SSL         bool
	Application Application
	// Certificate is the reference to it; Name is its alias.
	Certificate Ref
	Pool        Ref
	EngineGroup Ref
	Transparent bool
	// Health in VCD's words (UP, DOWN, …), and its message.
	Health, HealthMessage string
}

// A Pool as lists show it; with Full also what only the pool itself shows.
type Pool struct {
	Object
	Enabled bool
	// Services that send to it.
	Services []Ref
	Health   string
	// Hints of what only the pool itself shows; nil if there are none.
	Hints *Hints

	// Full says that what follows was read.
	Full      bool
	NodePort  int
	Members   []netip.Addr
	Group     Ref
	Probes    []Health // Port, Path and Interval only with [Capabilities.HealthPort]
	Sticky    bool
	Algorithm string
}

// Hints are what lists tell of pools in part: enough to see that somebody changed one, often.
type Hints struct {
	// ByGroup says that the members are those of a group.
	ByGroup bool
	// Members is how many there are; negative if that is not known.
	Members int
	// Monitored says that the pool has monitors.
	Monitored bool
}

// A Set is an IP set; with Full also its addresses.
type Set struct {
	Object
	// Edition of the wish by which it was last written ([Desired.Edition]); 0 if that is not known.
	Edition uint64
	Full    bool
	Members []netip.Addr
}

// A Claim is a floating IP that the organisation has allocated from an IP Space of the gateway: the owner's, those nobody has
// marked, and those of others, whose values are not free.
type Claim struct {
	ID, Description string
	Space           Ref
	Value           netip.Addr
	// Used says that VCD, or a person by hand, lists it as used; ours that are marked as used by hand are.
	Used bool
}

// A Rule is a DNAT rule.
type Rule struct {
	Object
	Enabled            bool
	External, Internal netip.Addr
	ExternalPort       int
	Profile            Ref
}

// A Profile is an application port profile of the organisation.
type Profile struct {
	Object
	Protocol Protocol
	Port     int
}

// A CertificateItem is one in the certificate library; Name is its alias.
type CertificateItem struct{ Object }

// A FirewallRule is a rule of the gateway's firewall.
type FirewallRule struct {
	Object
	Enabled bool
}

// A Use is something of another owner on an address of the gateway.
type Use struct {
	Address netip.Addr
	// Protocol and Port; an empty Protocol stands for all, 0 for all ports.
	Protocol Protocol
	Port     int
	Kind     Kind
	Name     string
	// Marker of the object; the zero value if it is nobody's of this cluster.
	Marker Marker
}

// A Ref refers to an object. In a step the ID may be empty: then Name is that of an object which an earlier step creates or which is there.
type Ref struct{ ID, Name string }

// Capabilities are what the gateway, the version of the API and the rights of the user allow.
type Capabilities struct {
	// SharedVIP: several virtual services may have one address (VCD 10.4 and later).
	SharedVIP bool
	// MemberSets: the members of a pool may be an IP set.
	MemberSets bool
	// PreserveClientIP: virtual services may be transparent.
	PreserveClientIP bool
	// IPv6: virtual services may have IPv6 addresses.
	IPv6 bool
	// L4TLS: layer 4 with TLS, which takes an Enterprise licence; false only if that is known.
	L4TLS bool
	// SourceRanges: rules of the firewall may be created and deleted one by one.
	SourceRanges bool
	// HealthPort: a monitor may have settings of its own: a port, a path, an interval.
	HealthPort bool
	// MaxMembers of a pool without an IP set; 0 has no limit.
	MaxMembers int
}
