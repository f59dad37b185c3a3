// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Facts are parts of an observation that not every plan depends on; each costs requests. A plan that lacks some
// asks for them ([Plan.Needs]), and is made again.
type Facts uint

// Facts.
const (
	// Addresses: Gateway.Ranges, Gateway.Used, Gateway.Spaces.
	Addresses Facts = 1 << iota
	// EngineGroups: Gateway.Groups.
	EngineGroups
	// Certificates: Observed.Certificates. A user who may not see the library has put nothing there: then it is
	// known to be empty.
	Certificates
	// Forwardings: Observed.Rules, Observed.Profiles, and the NAT rules in Observed.Taken.
	Forwardings
	// Firewall: Observed.Firewall.
	Firewall
	// FullPools: the owner's pools were all read in full.
	FullPools
	// FullSets: the cluster's IP sets were all read in full.
	FullSets
	// Hosts: what gateways and VMs have inside the organization, in Observed.Taken.
	Hosts
)

// Has reports whether all of the asked facts are known.
func (f Facts) Has(asked Facts) bool { return f&asked == asked }

// A Query is what to observe.
type Query struct {
	Owner loadbalancer.Owner
	// Subnet limits which free addresses of IP Spaces are of interest ([Desired.Subnet]).
	Subnet netip.Prefix
	// Facts to observe besides virtual services, pools, sets and claims, which always are.
	Facts Facts
	// Translated is set where load balancers are reached through DNAT rules: a missing right to see them is no
	// proof of absence.
	Translated bool
	// OwnMembers leaves out IP sets ([Desired.OwnMembers]).
	OwnMembers bool
	// Begins is set for an endpoint that is to exist: without a virtual service it is taken to have no pools and port
	// profiles but those that were written here.
	Begins bool
	// Fresh asks for what is read after the query; else cached lists do.
	Fresh bool
}

// Observed is what there is of an owner, complete, and what of the gateway its plan depends on. Objects of the
// owner are there also when half-built, pending or failed, and those that may be its by their names only
// ([OldName]).
type Observed struct {
	// Known facts. What is not known is empty below.
	Known   Facts
	Gateway Gateway

	Services     []VirtualService
	Pools        []Pool
	Sets         []Set // of the whole cluster
	Claims       []Claim
	VMNotOwned   []string // ids of claims without a marker that others are known to have made
	Rules        []Rule
	Profiles     []Profile
	Certificates []CertificateItem // the owner's, and unmarked ones
	Firewall     []FirewallRule

	// Taken is what others, of this cluster too, have on the gateway: virtual services and, if Forwardings are
	// known, both sides of DNAT rules; and what Hosts are.
	Taken []loadbalancer.Use
	// Strays are objects with the UID of the owner and the id of another cluster: the cluster had another id, or is
	// a copy.
	Strays []Stray
	// Others is set if other Services of the cluster have something on the gateway.
	Others bool
}

// claimOf returns the allocation of an address.
func (o Observed) claimOf(a netip.Addr) (Claim, bool) {
	i := slices.IndexFunc(o.Claims, func(c Claim) bool { return c.Value == a })
	if i < 0 {
		return Claim{}, false
	}
	return o.Claims[i], true
}
