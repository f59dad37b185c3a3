// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"strings"
)

// maxScanned is how many addresses of a range are tried for a free one.
const maxScanned = 1 << 16

// candidates checks and finds addresses that nothing of the owner is on.
type candidates struct{ *planner }

// problem explains why an address cannot be used; nil if it can. Takes Addresses, inside Hosts. An address is
// requested if the Service names it.
func (p candidates) problem(a netip.Addr, requested bool) *Finding {
	if i := slices.IndexFunc(p.own.others, func(u Use) bool { return u.Address == a && !p.sharable(u) }); i >= 0 {
		u := p.own.others[i]
		remedy := "share it by annotation on both Services"
		if p.d.Owner.IsEndpoint() {
			remedy = "delete that in VCD"
		}
		return finding(AddressTaken, "the address %s is used by the %s %q: request another one, or %s", a, u.Kind,
			u.Name, remedy)
	}
	if p.internal {
		return p.problemInside(a, requested)
	}
	if c, ok := p.o.claimOf(a); ok {
		return p.problemOfClaim(c, requested)
	}
	if space, ok := p.o.Gateway.spaceOf(a); ok && !space.Full {
		return nil
	} else if ok {
		return finding(NoFreeAddress,
			"the address %s is in the IP Space %q, of which the organization may have no more: "+
				"ask the provider for a higher quota, or request another one", a, space.Name)
	}
	if !inRanges(p.o.Gateway.Ranges, a) {
		return finding(AddressOutside,
			"the address %s is in no range and no IP Space of the edge gateway %q: request one of its addresses",
			a, p.o.Gateway.Name)
	}
	return p.problemOfUse(a, requested)
}

// problemOfUse explains why an address that the gateway itself uses cannot be taken.
func (p candidates) problemOfUse(a netip.Addr, requested bool) *Finding {
	for _, u := range p.o.Gateway.Used {
		translatable := requested && p.nat() && (u.Category == "SNAT" || u.Category == "PRIMARY_IP")
		if u.Address == a && !p.shared(a) && !translatable {
			return finding(AddressTaken, "the edge gateway uses the address %s already (%s): request another one", a,
				u.Category)
		}
	}
	return nil
}

func (p candidates) problemInside(a netip.Addr, requested bool) *Finding {
	switch allowed := p.d.InternalSubnets; {
	case len(allowed) > 0 && !slices.ContainsFunc(allowed, func(n netip.Prefix) bool { return n.Contains(a) }):
		return finding(AddressOutside,
			"the address %s is in none of the subnets that the configuration has for internal "+
				"load balancers, %s: request one of those", a, words(allowed))
	case requested && a.IsPrivate(), inRanges(p.d.insideRanges(), a):
		return nil
	}
	return finding(AddressOutside,
		"the address %s is not inside: request a private address, or one of the subnet of internal load balancers", a)
}

// problemOfClaim explains why an allocated address cannot be used. What was allocated by hand and is not used may be
// requested, if its description is empty or names the Service; else only what is marked, or was intended before it was
// allocated.
func (p candidates) problemOfClaim(c Claim, requested bool) *Finding {
	named := c.Description == "" || slices.Contains(strings.Fields(c.Description), p.d.Owner.String())
	if p.shared(c.Value) || p.own.claimed(c) || p.intends(c) || requested && !c.Used && named {
		return nil
	}
	return finding(AddressTaken, "the address %s of the IP Space %q is allocated to another use: request another one; "+
		"one that nothing uses can be had if its description in VCD is %q, or empty",
		c.Value, c.Space.Name, p.d.Owner.String())
}

// intends reports whether a claim was made for this load balancer, and not marked yet. What is used already was made
// for another purpose, unless the load balancer itself is on it.
func (p *planner) intends(c Claim) bool {
	return c.Description == "" && slices.Contains(p.d.Intent, c.Value) && (!c.Used || p.isOn(c.Value)) &&
		!slices.Contains(p.o.NotOurs, c.ID)
}

// isOn reports whether an object of the owner has an address.
func (p *planner) isOn(a netip.Addr) bool {
	return slices.ContainsFunc(p.all.services, func(vs owned[VirtualService]) bool {
		return slices.Contains(vs.object.VIPs, a)
	}) || slices.ContainsFunc(p.all.rules, func(r owned[Rule]) bool { return r.object.External == a })
}

// free finds an unused address.
func (p candidates) free(f Family) (netip.Addr, bool) {
	if p.internal {
		ranges := p.d.insideRanges()
		if len(ranges) == 0 {
			p.refuse(BadRange, "an internal load balancer needs a subnet or a one-arm range to take an address from: "+
				"name one by annotation or in the configuration")
		}
		return p.firstFree(ranges, f)
	}
	for _, s := range p.o.Gateway.Spaces {
		i := slices.IndexFunc(s.Free, func(a netip.Addr) bool { return FamilyOf(a) == f && p.allocatable(a) })
		if i >= 0 && (p.d.IPSpace == "" || isNamed(s.ID, s.Name, p.d.IPSpace)) {
			return s.Free[i], true
		}
	}
	if p.d.IPSpace != "" && len(p.o.Gateway.Spaces) > 0 {
		return netip.Addr{}, false
	}
	return p.firstFree(p.o.Gateway.Ranges, f)
}

func (p candidates) allocatable(a netip.Addr) bool {
	_, allocated := p.o.claimOf(a)
	return !allocated && (Range{a, a}).Within(p.d.Subnet).Contains(a) && p.problem(a, false) == nil
}

func (p candidates) firstFree(ranges []Range, f Family) (netip.Addr, bool) {
	scanned := 0
	for _, r := range ranges {
		r = r.Within(p.d.Subnet)
		for a := r.First; r.Contains(a) && FamilyOf(a) == f && scanned < maxScanned; a = a.Next() {
			if scanned++; p.problem(a, false) == nil {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}
