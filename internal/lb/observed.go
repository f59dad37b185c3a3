// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Facts are parts of an observation that only some plans depend on. Each costs requests. A plan that lacks facts names
// them ([Plan.Needs]), and is computed again.
type Facts uint

// Facts.
const (
	// Addresses: Gateway.Ranges, Gateway.Used, Gateway.Spaces.
	Addresses Facts = 1 << iota
	// EngineGroups: Gateway.Groups.
	EngineGroups
	// Certificates: Observed.Certificates. A user who may not see the library has imported nothing, so the list is
	// known to be empty.
	Certificates
	// Forwardings: Observed.Rules, Observed.Profiles, and the NAT rules in Observed.Taken.
	Forwardings
	// Firewall: Observed.Firewall.
	Firewall
	// FullPools: all pools of the owner were read in full.
	FullPools
	// FullSets: all IP sets of the cluster were read in full.
	FullSets
	// Hosts: addresses of gateways and VMs inside the organization, in Observed.Taken.
	Hosts
)

// Has reports whether all requested facts are known.
func (f Facts) Has(asked Facts) bool { return f&asked == asked }

// A Query selects what to observe.
type Query struct {
	Owner loadbalancer.Owner
	// Subnet restricts the free addresses of IP Spaces that are needed ([Desired.Subnet]).
	Subnet netip.Prefix
	// Facts to observe in addition to virtual services, pools, sets and claims, which are always observed.
	Facts Facts
	// Translated is set if load balancers are reached through DNAT rules. Then a missing right to see the rules does
	// not prove their absence.
	Translated bool
	// OwnMembers omits IP sets ([Desired.OwnMembers]).
	OwnMembers bool
	// Begins is set for a desired endpoint. If it has no virtual service, it is assumed to have only those pools and
	// port profiles that this process wrote.
	Begins bool
	// Fresh requests data that is read after the query. Otherwise, cached lists are used.
	Fresh bool
}

// Observed is the complete state of an owner's objects, and the state of the gateway that its plan depends on. It
// includes objects that are partially created, pending or failed, and objects that may belong to the owner only by
// their names ([OldName]).
type Observed struct {
	// Known facts. The fields of unknown facts are empty.
	Known   Facts
	Gateway Gateway

	Services      []VirtualService
	Pools         []Pool
	Sets          []Set // of the whole cluster
	Claims        []Claim
	ForeignClaims []string // IDs of unmarked claims that are known to belong to others
	Rules         []Rule
	Profiles      []Profile
	Certificates  []CertificateItem // the owner's, and unmarked ones
	Firewall      []FirewallRule

	// Taken are the uses of others, also in this cluster, on the gateway: virtual services and, if Forwardings are
	// known, both sides of DNAT rules. If Hosts are known, it includes their addresses.
	Taken []loadbalancer.Use
	// Strays are objects with the UID of the owner and the ID of another cluster. Either the ID of the cluster changed,
	// or the cluster is a copy.
	Strays []Stray
	// Others is set if other Services of the cluster have objects on the gateway.
	Others bool
}

// claimOf returns the claim of an address.
func (o Observed) claimOf(a netip.Addr) (Claim, bool) {
	i := slices.IndexFunc(o.Claims, func(c Claim) bool { return c.Value == a })
	if i < 0 {
		return Claim{}, false
	}
	return o.Claims[i], true
}
