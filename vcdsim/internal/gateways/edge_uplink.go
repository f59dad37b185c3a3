// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// An uplinkBody holds the fields of an uplink that the simulator reads.
type uplinkBody struct {
	UplinkID string `json:"uplinkId"`
	Subnets  struct {
		Values []uplinkSubnetBody `json:"values"`
	} `json:"subnets"`
	QuickAdd  int  `json:"quickAddAllocatedIpCount"`
	Dedicated bool `json:"dedicated"`
}

type uplinkSubnetBody struct {
	Gateway      string     `json:"gateway"`
	PrefixLength int        `json:"prefixLength"`
	IPRanges     JSONRanges `json:"ipRanges"`
	PrimaryIP    string     `json:"primaryIp"`
	Total        *int       `json:"totalIpCount"`
	Auto         bool       `json:"autoAllocateIpRanges"`
}

// readUplink reads an uplink and allocates the addresses that it requests. The gateway before the update is old, or nil
// for a new gateway. Only the first uplink has a primary address.
func (eg EdgeGateways) readUplink(body uplinkBody, old *store.EdgeGateway, first bool) (store.Uplink, error) {
	external := eg.cloud.Store.External(store.Bare(body.UplinkID))
	if external == nil {
		return store.Uplink{}, store.Forbidden("EXTERNAL_NETWORK_VIEW", body.UplinkID)
	}
	u := store.Uplink{Network: external.ID, Dedicated: body.Dedicated}
	if external.UsesSpaces {
		return u, nil
	}
	for _, in := range body.Subnets.Values {
		subnet, err := eg.readUplinkSubnet(external, in, old)
		if err != nil {
			return u, err
		}
		u.Subnets = append(u.Subnets, subnet)
	}
	return u, eg.completeUplink(external, &u, old, body.QuickAdd, first)
}

// completeUplink allocates the requested number of additional addresses, and selects the primary address.
func (eg EdgeGateways) completeUplink(external *store.ExternalNetwork, u *store.Uplink, old *store.EdgeGateway, more int,
	first bool,
) error {
	primary := slices.ContainsFunc(u.Subnets, func(x store.UplinkSubnet) bool { return x.Primary.IsValid() })
	for i := range u.Subnets {
		sub := &u.Subnets[i]
		minimum := more
		if first && !primary && len(sub.Addresses) == 0 {
			minimum = max(1, more)
		}
		if minimum > 0 {
			taken := append(eg.allocatedAddresses(external.ID, old), sub.Addresses...)
			got, ok := takeAddresses(subnetPool(external, sub.Gateway), taken, minimum)
			if !ok {
				return store.Refuse(400, store.CodeBadRequest, "There are not enough free IP addresses in the external network %q.", external.Name)
			}
			sub.Addresses = mergeRanges(append(sub.Addresses, got...))
			more = 0
		}
		if first && !primary && len(sub.Addresses) > 0 {
			sub.Primary = sub.Addresses[0].From
			primary = true
		}
	}
	return nil
}

func (eg EdgeGateways) readUplinkSubnet(external *store.ExternalNetwork, in uplinkSubnetBody,
	old *store.EdgeGateway,
) (store.UplinkSubnet, error) {
	var out store.UplinkSubnet
	subnet, err := externalSubnet(external, in.Gateway)
	if err != nil {
		return out, err
	}
	out.Gateway = subnet.Gateway
	if out.Addresses, err = in.IPRanges.Ranges(out.Gateway); err != nil {
		return out, err
	}
	var primary []store.Range
	if in.PrimaryIP != "" {
		if primary, err = (JSONRanges{[]JSONRange{{StartAddress: in.PrimaryIP}}}).Ranges(out.Gateway); err != nil {
			return out, err
		}
		out.Primary = primary[0].From
	}
	taken := eg.allocatedAddresses(external.ID, old)
	if in.Auto && in.Total != nil {
		own := mergeRanges(append(gatewayAddresses(old, external.ID, out.Gateway), primary...))
		if out.Addresses, err = resizeAddresses(external, own, subnet.Pool, taken, *in.Total); err != nil {
			return out, err
		}
	}
	if !within(primary, out.Addresses) {
		out.Addresses = mergeRanges(append(out.Addresses, primary...))
	}
	return out, checkAvailable(external, out.Addresses, subnet.Pool, taken)
}

// checkAvailable refuses addresses that are outside the pool or allocated to another gateway.
func checkAvailable(external *store.ExternalNetwork, addresses, pool, taken []store.Range) error {
	switch {
	case !within(addresses, pool):
		return store.BadRequest("The IP ranges are not within the static IP pool of the external network %q.", external.Name)
	case Overlap(addresses, taken):
		return store.BadRequest("The IP ranges overlap with addresses that are already allocated to another edge gateway.")
	}
	return nil
}

// externalSubnet returns the subnet of an external network with a gateway address. VCD accepts an address that the
// network does not have, as the tests of go-vcloud-director show, and uses the first subnet instead.
func externalSubnet(e *store.ExternalNetwork, gateway string) (store.ExternalSubnet, error) {
	a, err := netip.ParseAddr(gateway)
	if err != nil {
		return store.ExternalSubnet{}, store.BadRequest("The IP address %q is invalid.", gateway)
	}
	for _, s := range e.Subnets {
		if s.Gateway.Addr() == a {
			return s, nil
		}
	}
	if len(e.Subnets) == 0 {
		return store.ExternalSubnet{}, store.BadRequest("The external network %q has no subnet with the gateway %s.", e.Name, a)
	}
	return e.Subnets[0], nil
}

// resizeAddresses changes the number of a gateway's addresses to total. It keeps the gateway's own addresses as far as
// possible, and then takes free addresses of the pool.
func resizeAddresses(external *store.ExternalNetwork, own, pool, taken []store.Range, total int) ([]store.Range, error) {
	if total < 1 {
		return nil, store.BadRequest("An edge gateway must keep at least one IP address of the external network %q.",
			external.Name)
	}
	out, ok := takeAddresses(own, nil, total)
	if ok {
		return out, nil
	}
	more, ok := takeAddresses(pool, append(slices.Clone(taken), own...), total-Count(own))
	if !ok {
		return nil, store.BadRequest("There are not enough free IP addresses in the external network %q.", external.Name)
	}
	return mergeRanges(append(out, more...)), nil
}

// subnetPool returns the static pool of the subnet with a gateway address.
func subnetPool(e *store.ExternalNetwork, gateway netip.Prefix) []store.Range {
	for _, s := range e.Subnets {
		if s.Gateway == gateway {
			return s.Pool
		}
	}
	return nil
}

// gatewayAddresses returns the addresses of a gateway in a subnet of an external network. It returns nil if g is nil.
func gatewayAddresses(g *store.EdgeGateway, external string, gateway netip.Prefix) []store.Range {
	if g == nil {
		return nil
	}
	var out []store.Range
	for _, u := range g.Uplinks {
		for _, s := range u.Subnets {
			if u.Network == external && s.Gateway == gateway {
				out = append(out, s.Addresses...)
			}
		}
	}
	return out
}

// allocatedAddresses returns the addresses of an external network that are allocated to gateways. Those of the gateway
// except do not count; except may be nil.
func (eg EdgeGateways) allocatedAddresses(external string, except *store.EdgeGateway) []store.Range {
	var out []store.Range
	for o := range eg.cloud.Store.Model.Orgs {
		for v := range eg.cloud.Store.Model.Orgs[o].VDCs {
			for _, g := range eg.cloud.Store.Model.Orgs[o].VDCs[v].EdgeGateways {
				if except != nil && g.ID == except.ID {
					continue
				}
				for _, u := range g.Uplinks {
					for _, sub := range u.Subnets {
						if u.Network == external {
							out = append(out, sub.Addresses...)
						}
					}
				}
			}
		}
	}
	return out
}

// checkUsedKept refuses a change of a gateway that removes an address in use.
func (eg EdgeGateways) checkUsedKept(old, next *store.EdgeGateway) error {
	if old == nil {
		return nil
	}
	for _, used := range eg.UsedBy(old) {
		kept := slices.ContainsFunc(next.Uplinks, func(u store.Uplink) bool {
			return u.Network == used.network &&
				(eg.usesSpaces(u) ||
					slices.ContainsFunc(u.Subnets,
						func(x store.UplinkSubnet) bool { return InRanges(x.Addresses, used.Address) }))
		})
		if !kept {
			return store.Refuse(400, "VALIDATION_ERROR", "The IP address %s cannot be deallocated because it is in use (%s).", used.Address, used.Category)
		}
	}
	return nil
}

func uplinkJSON(s *cloud.Cloud, g *store.EdgeGateway, u store.Uplink) map[string]any {
	out := map[string]any{
		"uplinkId":                 store.URN("network", u.Network),
		"uplinkName":               "",
		"connected":                true,
		"dedicated":                u.Dedicated,
		"vrfLiteBacked":            false,
		"quickAddAllocatedIpCount": nil,
		"usingIpSpace":             false,
		"backingType":              nil,
	}
	if e := s.Store.External(u.Network); e != nil {
		out["uplinkName"] = e.Name
		out["usingIpSpace"] = e.UsesSpaces
		out["backingType"] = ExternalBacking(e)
		out["vrfLiteBacked"] = ExternalBacking(e) == store.BackingVRF
	}
	values := []any{}
	for _, sub := range u.Subnets {
		used := 0
		for _, x := range EdgesOf(s).UsedBy(g) {
			if x.network == u.Network && sub.Gateway.Masked().Contains(x.Address) {
				used++
			}
		}
		var primary any
		if sub.Primary.IsValid() {
			primary = sub.Primary.String()
		}
		values = append(values, map[string]any{
			"gateway":              sub.Gateway.Addr().String(),
			"prefixLength":         sub.Gateway.Bits(),
			"dnsSuffix":            nil,
			"dnsServer1":           "",
			"dnsServer2":           "",
			"ipRanges":             RangesJSON(sub.Addresses),
			"enabled":              true,
			"totalIpCount":         Count(sub.Addresses),
			"usedIpCount":          used,
			"primaryIp":            primary,
			"autoAllocateIpRanges": false,
		})
	}
	out["subnets"] = map[string]any{"values": values}
	return out
}

// ExternalBacking returns the type of the backing of an external network.
func ExternalBacking(e *store.ExternalNetwork) string {
	if e.Backing == "" {
		return store.BackingTier0
	}
	return e.Backing
}
