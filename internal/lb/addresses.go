// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A frontend is the set of addresses where clients reach the load balancer.
type frontend struct {
	families []loadbalancer.Family
	// internal is set if the load balancer has an address inside the organization.
	internal bool
	// translated is set if virtual services are reached through DNAT rules.
	translated bool
	// external maps families to the addresses that clients use. unused marks families where the owner has no object on
	// the address yet.
	external map[loadbalancer.Family]netip.Addr
	unused   map[loadbalancer.Family]bool
}

// addresses returns the addresses in the order of the families.
func (f frontend) addresses() []netip.Addr {
	var out []netip.Addr
	for _, family := range f.families {
		if a := f.external[family]; a.IsValid() {
			out = append(out, a)
		}
	}
	return out
}

// has reports whether clients use an address.
func (f frontend) has(a netip.Addr) bool { return f.external[loadbalancer.FamilyOf(a)] == a }

// chooseAddresses chooses the address of each family that clients use.
func chooseAddresses(in input, families []loadbalancer.Family) (frontend, outcome) {
	internal, out := choosesInternal(in)
	front := frontend{
		internal:   internal,
		translated: in.desired.OneArm != nil && !internal,
	}
	if front.translated || slices.ContainsFunc(in.owned.services, mayBeForwarded) {
		out.need(Forwardings)
	}
	if !in.can.SharedVIP && !front.translated && len(in.desired.Listeners) > 1 {
		out.refuse(Unsupported, "this VCD version supports only one virtual service, and so one port, for each address: configure one-arm mode, upgrade to VCD 10.4, or use one port")
	}
	if out.stops() {
		return front, out // the addresses of the load balancer are not known yet
	}
	if front.translated && slices.Contains(families, loadbalancer.IPv6) {
		families = slices.DeleteFunc(slices.Clone(families), func(f loadbalancer.Family) bool { return f == loadbalancer.IPv6 })
		if out.add(omitFamily(in, families, untranslatable)); out.stops() {
			return front, out
		}
	}
	c := addressChooser{
		in:         in,
		families:   families,
		presence:   presence{in.desired, in.owned, internal},
		candidates: candidates{in, front},
		external:   map[loadbalancer.Family]netip.Addr{},
		unused:     map[loadbalancer.Family]bool{},
		out:        out,
	}
	for _, f := range families {
		if !c.chooseOrOmit(f) {
			front.families = append(front.families, f)
		}
	}
	front.external = c.external
	front.unused = c.unused
	return front, c.out
}

// mayBeForwarded reports whether a DNAT rule may lead to a virtual service.
func mayBeForwarded(vs owned[VirtualService]) bool {
	return vs.old || vs.marker.Via == ViaNAT || vs.marker.Forwarded
}

// choosesInternal reports whether the load balancer should be inside the organization: on request, or because the
// Service requests an address there.
func choosesInternal(in input) (bool, outcome) {
	out := in.outcome()
	if in.desired.Internal {
		return true, out
	}
	for _, a := range in.desired.Requested {
		if !a.IsPrivate() {
			continue
		}
		internal, known := wasInternal(in, a)
		if !known && out.need(Addresses) {
			internal = !isOfGateway(in.observed, a)
		}
		if internal {
			return true, out
		}
	}
	return false, out
}

// wasInternal reports whether a private address of the owner is inside the organization. known is false if the owner
// does not have the address.
func wasInternal(in input, a netip.Addr) (internal, known bool) {
	for _, vs := range in.owned.services {
		if slices.Contains(vs.object.VIPs, a) && !vs.old {
			return vs.marker.Via == ViaInside, true
		}
	}
	return false, slices.ContainsFunc(in.owned.rules, func(r owned[Rule]) bool { return r.object.External == a })
}

// isOfGateway reports whether an address, which may be private, belongs to the gateway. It requires the fact Addresses.
func isOfGateway(o Observed, a netip.Addr) bool {
	_, inSpace := o.Gateway.spaceOf(a)
	_, allocated := o.claimOf(a)
	return inSpace || allocated || inRanges(o.Gateway.Ranges, a)
}

// An addressChooser chooses the addresses, family by family.
type addressChooser struct {
	in         input
	families   []loadbalancer.Family
	presence   presence
	candidates candidates

	external map[loadbalancer.Family]netip.Addr
	unused   map[loadbalancer.Family]bool
	out      outcome
}

// chooseOrOmit chooses the address of a family: the requested one, else the current one, else the intended one, else a
// free one. It reports whether the load balancer does without this family.
func (c *addressChooser) chooseOrOmit(f loadbalancer.Family) bool {
	if a, ok := firstOf(f, c.in.desired.Requested); ok {
		c.request(f, a)
		return false
	}
	if a, ok := c.presence.current(f); ok {
		c.external[f] = a
		c.verifyClaim(a)
		return false
	}
	if !c.out.need(c.places()) {
		return false
	}
	if f != c.families[0] && !c.candidates.offered(f) {
		where := "the edge gateway has no %s addresses"
		if c.candidates.front.internal {
			where = "the subnets for internal load balancers have no %s addresses"
		}
		c.out.add(omitFamily(c.in, c.families, fmt.Sprintf(where, f)))
		return true
	}
	a, ok := c.available(f)
	if !ok && f != c.families[0] && !c.in.desired.AllFamilies {
		c.out.notice(NoFreeAddress, "no %s address is free%s: the load balancer has an %s address only", f, c.limits(f), c.families[0])
		return true
	}
	c.choose(f, a)
	return false
}

// places returns the facts that show which addresses are available.
func (c *addressChooser) places() Facts {
	if c.candidates.front.internal {
		return Hosts
	}
	return Addresses
}

// request chooses a requested address, or refuses it.
func (c *addressChooser) request(f loadbalancer.Family, a netip.Addr) {
	c.external[f] = a
	switch {
	case c.presence.count(a) > 0:
		c.verifyClaim(a)
	case c.out.need(c.places()):
		if problem := c.candidates.problem(a, true); problem != nil {
			c.out.refusals = append(c.out.refusals, *problem)
			return
		}
		c.unused[f] = true
	}
}

// verifyClaim requires the IP Spaces if an address of the load balancer is not allocated. If the address belongs to an
// IP Space, it was released and may be given to another organization.
func (c *addressChooser) verifyClaim(a netip.Addr) {
	_, allocated := c.in.observed.claimOf(a)
	if !allocated && c.in.observed.Gateway.UsesSpaces && !c.candidates.front.internal {
		c.out.need(Addresses)
	}
}

// available returns an address for a load balancer that has none.
func (c *addressChooser) available(f loadbalancer.Family) (netip.Addr, bool) {
	if a, ok := c.candidates.preferred(f); ok {
		return a, true
	}
	return c.candidates.free(f)
}

// choose chooses the available address of a family, or refuses the family if there is none.
func (c *addressChooser) choose(f loadbalancer.Family, available netip.Addr) {
	switch {
	case available.IsValid():
		c.external[f] = available
		c.unused[f] = true
	case c.candidates.front.internal && len(c.in.desired.insideRanges()) == 0:
		c.out.refuse(InvalidRange, "an internal load balancer requires a subnet or a one-arm range for its address: set one with an annotation or in the configuration")
	case len(c.out.refusals) == 0:
		c.out.refuse(NoFreeAddress, "no %s address is free%s: ask the provider for more addresses, or request a specific address", f,
			c.limits(f))
	}
}

// limits describes the restrictions of the choice.
func (c *addressChooser) limits(f loadbalancer.Family) string {
	text := ""
	if subnet := c.in.desired.Subnet; subnet.IsValid() && loadbalancer.FamilyOf(subnet.Addr()) == f {
		text = " in " + subnet.String()
	}
	if space := c.candidates.spaceFor(f); space != "" && !c.candidates.front.internal {
		text += fmt.Sprintf(" in the IP Space %q", space)
	}
	return text
}
