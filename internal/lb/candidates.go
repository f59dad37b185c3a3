package lb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// mostLooked is how many addresses of a range are looked at for a free one.
const maxScanned = 1 << 16

// candidates checks and finds addresses that nothing of the owner is on.
type candidates struct{ *planner }

// problem says why an address on which nothing of the owner is cannot be used; nil if it can. Takes Addresses, except inside.
func (p candidates) problem(a netip.Addr, asked bool) *Finding {
	if i := slices.IndexFunc(p.own.others, func(u Use) bool { return u.Address == a && !p.sharable(u) }); i >= 0 {
		u := p.own.others[i]
		return &Finding{AddressTaken, fmt.Sprintf("the address %s is used by the %s %q: request another one, or share it by annotation on both Services", a, u.Kind, u.Name)}
	}
	if p.internal {
		return p.problemInside(a, asked)
	}
	shared := p.sharedBy(a)
	if c, ok := p.claimOf(a); ok {
		return p.problemOfClaim(c, asked, shared)
	}
	if space, ok := p.spaceOf(a); ok {
		return p.problemOfSpace(a, space)
	}
	if !inRanges(p.o.Gateway.Ranges, a) {
		return &Finding{AddressOutside, fmt.Sprintf("the address %s is in no range and no IP Space of the edge gateway %q: request one of its addresses", a, p.o.Gateway.Name)}
	}
	return p.problemOfUse(a, asked, shared)
}

// problemOfUse says why an address of the gateway's ranges cannot be used because the gateway uses it.
func (p candidates) problemOfUse(a netip.Addr, asked, shared bool) *Finding {
	for _, u := range p.o.Gateway.Used {
		translatable := asked && p.nat() && (u.Category == "SNAT" || u.Category == "PRIMARY_IP")
		if u.Address == a && !shared && !translatable {
			return &Finding{AddressTaken, fmt.Sprintf("the edge gateway uses the address %s already (%s): request another one", a, u.Category)}
		}
	}
	return nil
}

// problemOfSpace says why an address of an IP Space, which nobody has, cannot be allocated.
func (p *planner) problemOfSpace(a netip.Addr, space Ref) *Finding {
	for _, s := range p.o.Gateway.Spaces {
		if s.ID == space.ID && s.Full {
			return &Finding{NoFreeAddress, fmt.Sprintf("the address %s is in the IP Space %q, of which the organization may have no more: ask the provider for a higher quota, "+
				"or request another one", a, s.Name)}
		}
	}
	return nil
}

func (p candidates) problemInside(a netip.Addr, asked bool) *Finding {
	if asked && a.IsPrivate() || slices.ContainsFunc(p.insideRanges(), func(r Range) bool { return r.Contains(a) }) {
		return nil
	}
	return &Finding{AddressOutside, fmt.Sprintf("the address %s is not inside: request a private address, or one of the subnet of internal load balancers", a)}
}

// problemOfClaim says why an address that the organisation has allocated cannot be used. What a person allocated and nothing uses may be
// requested; else only what is marked, or what was written down before it was allocated.
func (p candidates) problemOfClaim(c Claim, asked, shared bool) *Finding {
	switch {
	case shared || p.ours(c):
		return nil
	case asked && !c.Used && !claimed(c):
		return nil
	}
	return &Finding{AddressTaken, fmt.Sprintf("the address %s of the IP Space %q is allocated to another use: request another one", c.Value, c.Space.Name)}
}

// ours says whether an allocation is the owner's: marked, or intended and not marked by anybody.
func (p *planner) ours(c Claim) bool { return p.mine(c) || p.begun(c) }

func (p *planner) mine(c Claim) bool {
	return slices.ContainsFunc(p.own.claims, func(x Claim) bool { return x.ID == c.ID })
}

// begun says whether an allocation was made by this load balancer and not marked before it was interrupted.
func (p *planner) begun(c Claim) bool {
	return c.Description == "" && slices.Contains(p.d.Intent, c.Value)
}

// claimed says whether somebody's program has marked an allocation.
func claimed(c Claim) bool {
	_, ok := ParseMarker(c.Description)
	return ok || strings.Contains(c.Description, "-namespace-") && strings.Contains(c.Description, "-service-")
}

// free finds an address that nobody uses.
func (p candidates) free(f Family) (netip.Addr, bool) {
	if p.internal {
		ranges := p.insideRanges()
		if len(ranges) == 0 {
			p.refuse(BadRange, "an internal load balancer needs a subnet or a one-arm range to take an address from: name one by annotation or in the configuration")
		}
		return p.firstFree(ranges, f)
	}
	for _, s := range p.o.Gateway.Spaces {
		i := slices.IndexFunc(s.Free, func(a netip.Addr) bool { return FamilyOf(a) == f && p.allocatable(a) })
		if i >= 0 && (p.d.IPSpace == "" || s.Name == p.d.IPSpace) {
			return s.Free[i], true
		}
	}
	if p.d.IPSpace != "" && len(p.o.Gateway.Spaces) > 0 {
		return netip.Addr{}, false
	}
	return p.firstFree(p.o.Gateway.Ranges, f)
}

func (p candidates) allocatable(a netip.Addr) bool {
	_, allocated := p.claimOf(a)
	return !allocated && p.allowed(a) && p.problem(a, false) == nil
}

// insideRanges are the ranges of internal load balancers.
func (p *planner) insideRanges() []Range {
	switch {
	case p.d.Subnet.IsValid():
		return []Range{hosts(p.d.Subnet)}
	case p.d.OneArm != nil:
		return []Range{*p.d.OneArm}
	}
	return nil
}

func (p candidates) firstFree(ranges []Range, f Family) (netip.Addr, bool) {
	scanned := 0
	for _, r := range ranges {
		if p.d.Subnet.IsValid() {
			r = intersect(r, hosts(p.d.Subnet))
		}
		for a := r.First; r.Contains(a) && FamilyOf(a) == f && scanned < maxScanned; a = a.Next() {
			if scanned++; p.problem(a, false) == nil {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}

func (p candidates) allowed(a netip.Addr) bool {
	return !p.d.Subnet.IsValid() || p.d.Subnet.Contains(a)
}

// hosts are the addresses of a subnet that hosts may have.
func hosts(n netip.Prefix) Range {
	first := n.Masked().Addr()
	bytes := first.AsSlice()
	for i := n.Bits(); i < first.BitLen(); i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	if first.Is4() && n.Bits() < 31 {
		return Range{first.Next(), last.Prev()}
	}
	return Range{first, last}
}

// meet is what two ranges have in common.
func intersect(a, b Range) Range {
	if a.First.Is4() != b.First.Is4() {
		return Range{}
	}
	if a.First.Less(b.First) {
		a.First = b.First
	}
	if b.Last.Less(a.Last) {
		a.Last = b.Last
	}
	return a
}
