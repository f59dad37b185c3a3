// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// maxScanned is the maximum number of addresses in a range that are checked.
const maxScanned = 1 << 16

// candidates checks and finds addresses on which the owner has no objects.
type candidates struct {
	in    input
	front frontend // as far as it is decided: internal or not, translated or not
}

// offered reports whether there are addresses of a family, used or not. It requires the fact Addresses, but no fact for
// internal load balancers.
func (c *candidates) offered(f loadbalancer.Family) bool {
	of := func(r Range) bool { return loadbalancer.FamilyOf(r.First) == f }
	if c.front.internal {
		return slices.ContainsFunc(c.in.desired.insideRanges(), of)
	}
	gateway := c.in.observed.Gateway
	return slices.ContainsFunc(gateway.Ranges, of) ||
		slices.ContainsFunc(gateway.Spaces, func(s Space) bool { return slices.ContainsFunc(s.Ranges, of) })
}

// preferred returns an address that takes precedence over free ones: a shared, intended, claimed or published one.
func (c *candidates) preferred(f loadbalancer.Family) (netip.Addr, bool) {
	var list []netip.Addr
	for _, u := range c.in.owned.others {
		if c.isSharable(u) {
			list = append(list, u.Address)
		}
	}
	list = append(list, c.in.desired.Intent...)
	for _, x := range c.in.owned.claims {
		list = append(list, x.Value)
	}
	list = append(list, c.in.desired.Published...)
	for _, a := range list {
		if loadbalancer.FamilyOf(a) == f && c.problem(a, false) == nil {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// free returns an unused address.
func (c *candidates) free(f loadbalancer.Family) (netip.Addr, bool) {
	if c.front.internal {
		return c.firstFree(c.in.desired.insideRanges(), f)
	}
	gateway := c.in.observed.Gateway
	space := c.spaceFor(f)
	for _, s := range gateway.Spaces {
		i := slices.IndexFunc(s.Free, func(a netip.Addr) bool { return loadbalancer.FamilyOf(a) == f && c.isAllocatable(a) })
		if i >= 0 && (space == "" || isNamed(s.ID, s.Name, space)) {
			return s.Free[i], true
		}
	}
	if space != "" && len(gateway.Spaces) > 0 {
		return netip.Addr{}, false
	}
	return c.firstFree(gateway.Ranges, f)
}

// spaceFor returns the only IP Space from which an address of a family is chosen, or an empty string. An IP Space has
// addresses of one family, so it does not restrict the other one.
func (c *candidates) spaceFor(f loadbalancer.Family) string {
	space := c.in.desired.IPSpace
	for _, s := range c.in.observed.Gateway.Spaces {
		hasFamily := slices.ContainsFunc(s.Ranges, func(r Range) bool { return loadbalancer.FamilyOf(r.First) == f })
		if isNamed(s.ID, s.Name, space) && len(s.Ranges) > 0 && !hasFamily {
			return ""
		}
	}
	return space
}

// isAllocatable reports whether a free address of an IP Space can be chosen.
func (c *candidates) isAllocatable(a netip.Addr) bool {
	_, allocated := c.in.observed.claimOf(a)
	return !allocated && (Range{a, a}).Within(c.in.desired.Subnet).Contains(a) && c.problem(a, false) == nil
}

// firstFree returns the first usable address of the ranges, within the subnet.
func (c *candidates) firstFree(ranges []Range, f loadbalancer.Family) (netip.Addr, bool) {
	scanned := 0
	for _, r := range ranges {
		r = r.Within(c.in.desired.Subnet)
		for a := r.First; r.Contains(a) && loadbalancer.FamilyOf(a) == f && scanned < maxScanned; a = a.Next() {
			if scanned++; c.problem(a, false) == nil {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}

// problem explains why an address cannot be used, or returns nil. requested means that the Service names the address.
// It requires the fact Addresses, or Hosts for internal load balancers.
func (c *candidates) problem(a netip.Addr, requested bool) *loadbalancer.Finding {
	if problem := c.problemOfOthers(a); problem != nil {
		return problem
	}
	if c.front.internal {
		return c.problemInside(a, requested)
	}
	if claim, ok := c.in.observed.claimOf(a); ok {
		return c.problemOfClaim(claim, requested)
	}
	gateway := c.in.observed.Gateway
	if space, ok := gateway.spaceOf(a); ok {
		return problemOfSpace(space, a)
	}
	if !inRanges(gateway.Ranges, a) {
		return finding(AddressOutOfRange,
			"the address %s is not in a range or IP Space of the edge gateway %q: request one of its addresses",
			a, gateway.Name)
	}
	return c.problemOfUse(a, requested)
}

// problemOfOthers explains why an address that others use cannot be used.
func (c *candidates) problemOfOthers(a netip.Addr) *loadbalancer.Finding {
	others := c.in.owned.others
	i := slices.IndexFunc(others, func(u loadbalancer.Use) bool { return u.Address == a && !c.isSharable(u) })
	if i < 0 {
		return nil
	}
	remedy := "share it with the annotation on both Services"
	if c.in.desired.Owner.IsEndpoint() {
		remedy = "delete that object in VCD"
	}
	return finding(AddressInUse, "the address %s is used by the %s %q: request another one, or %s", a, others[i].Kind,
		others[i].Name, remedy)
}

// problemInside explains why an address is not available to an internal load balancer.
func (c *candidates) problemInside(a netip.Addr, requested bool) *loadbalancer.Finding {
	d := c.in.desired
	switch allowed := d.InternalSubnets; {
	case len(allowed) > 0 && !slices.ContainsFunc(allowed, func(n netip.Prefix) bool { return n.Contains(a) }):
		return finding(AddressOutOfRange,
			"the address %s is not in the configured subnets for internal load balancers, %s: request an address in one of them", a, words(allowed))
	case requested && a.IsPrivate(), inRanges(d.insideRanges(), a):
		return nil
	}
	return finding(AddressOutOfRange,
		"the address %s is not internal: request a private address, or one in the subnet of internal load balancers", a)
}

// problemOfClaim explains why an allocated address cannot be used. An unused address that was allocated manually may be
// requested, if its description is empty or names the Service. Otherwise, the address must carry the owner's marker, or
// must have been intended before it was allocated.
func (c *candidates) problemOfClaim(x Claim, requested bool) *loadbalancer.Finding {
	owner := c.in.desired.Owner
	named := x.Description == "" || slices.Contains(strings.Fields(x.Description), owner.String())
	if c.isShared(x.Value) || c.in.owned.claimed(x) || c.in.owned.intends(x) || requested && !x.Used && named {
		return nil
	}
	return finding(AddressInUse, "the address %s of the IP Space %q is allocated for another use: request another one. An unused address is available if its description in VCD is %q or empty",
		x.Value, x.Space.Name, owner.String())
}

// problemOfSpace explains why an address of an IP Space cannot be allocated.
func problemOfSpace(s Space, a netip.Addr) *loadbalancer.Finding {
	if !s.Full {
		return nil
	}
	return finding(NoFreeAddress,
		"the organization has no quota left for the address %s in the IP Space %q: ask the provider for a higher quota, or request another address", a, s.Name)
}

// problemOfUse explains why an address that the gateway itself uses cannot be used.
func (c *candidates) problemOfUse(a netip.Addr, requested bool) *loadbalancer.Finding {
	for _, u := range c.in.observed.Gateway.Used {
		translatable := requested && c.front.translated && (u.Category == "SNAT" || u.Category == "PRIMARY_IP")
		if u.Address == a && !c.isShared(a) && !translatable {
			return finding(AddressInUse, "the edge gateway already uses the address %s (%s): request another one", a,
				u.Category)
		}
	}
	return nil
}

// isSharable reports whether the owner of an object on an address shares the address with this load balancer. Internal
// and external load balancers do not share addresses.
func (c *candidates) isSharable(u loadbalancer.Use) bool {
	d := c.in.desired
	return d.Share != "" && u.Share == d.Share && u.Owner.Cluster == d.Owner.Cluster &&
		(u.Promised || u.Internal == c.front.internal)
}

// isShared reports whether this load balancer may share an address with others.
func (c *candidates) isShared(a netip.Addr) bool {
	return slices.ContainsFunc(c.in.owned.others, func(u loadbalancer.Use) bool { return u.Address == a && c.isSharable(u) })
}
