// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
)

// A listenerPlanner finds the objects of each listener, and the addresses of its virtual service.
type listenerPlanner struct{ *planner }

func (p listenerPlanner) plan() {
	for _, l := range slices.SortedFunc(slices.Values(p.d.Listeners), Listener.Compare) {
		t := &target{listener: l}
		t.service, _ = take(&p.own.services, l.Key())
		t.pool, _ = take(&p.own.pools, l.Key())
		if p.nat() {
			t.rule, _ = take(&p.own.rules, l.Key())
			t.profile, _ = take(&p.own.profiles, l.Key())
		} else {
			for _, f := range p.families {
				t.vips = append(t.vips, p.external[f])
			}
		}
		p.targets = append(p.targets, t)
	}
	if p.nat() {
		p.armAddresses()
	}
	if len(p.out.Refusals) == 0 {
		p.checkPorts()
	}
}

// armAddresses gives virtual services addresses of the one-arm range: those they have, else one for all, where
// virtual services may share an address, else one for each.
func (p listenerPlanner) armAddresses() {
	common, used := p.keepArmAddresses()
	for _, t := range p.targets {
		if len(t.vips) > 0 {
			continue
		}
		a := common
		if !p.c.SharedVIP || !a.IsValid() || p.portTaken(a, t.listener) != "" {
			a = p.freeArm(used)
		}
		if !a.IsValid() {
			p.refuse(NoFreeAddress, "no address of the one-arm range %s to %s is free: configure a longer one",
				p.d.OneArm.First, p.d.OneArm.Last)
			return
		}
		t.vips = []netip.Addr{a}
		used[a] = true
		common = a
	}
}

// keepArmAddresses leaves virtual services where they are. It returns the lowest of these addresses, and all of them.
func (p listenerPlanner) keepArmAddresses() (common netip.Addr, used map[netip.Addr]bool) {
	used = map[netip.Addr]bool{}
	for _, t := range p.targets {
		a := p.armAddressOf(t)
		if !a.IsValid() || !p.c.SharedVIP && used[a] {
			continue
		}
		t.vips = []netip.Addr{a}
		used[a] = true
		if !common.IsValid() || a.Less(common) {
			common = a
		}
	}
	return common, used
}

// armAddressOf is the address behind NAT that a listener has already.
func (p listenerPlanner) armAddressOf(t *target) netip.Addr {
	inside := t.rule.object.Internal
	for _, a := range t.service.object.VIPs {
		if a != p.external[IPv4] && (p.d.OneArm.Contains(a) || t.rule.exists() && inside == a) {
			return a
		}
	}
	if t.rule.exists() && p.d.OneArm.Contains(inside) && p.portTaken(inside, t.listener) == "" {
		return inside
	}
	return netip.Addr{}
}

// freeArm is the first unused address of the one-arm range.
func (p listenerPlanner) freeArm(used map[netip.Addr]bool) netip.Addr {
	for i, a := 0, p.d.OneArm.First; p.d.OneArm.Contains(a) && i < maxScanned; i, a = i+1, a.Next() {
		if !used[a] && !slices.ContainsFunc(p.own.others, func(u Use) bool { return u.Address == a }) {
			return a
		}
	}
	return netip.Addr{}
}

// portTaken names what others have on a port of an address. That an address is reserved changes nothing for an owner
// that is on it.
func (p listenerPlanner) portTaken(a netip.Addr, l Listener) string {
	settled := p.isOn(a)
	for _, u := range p.own.others {
		if u.Address == a && (!u.Reserved || !settled) && (u.Port == 0 || u.Port == l.Port) &&
			(u.Protocol == "" || u.Protocol == l.Protocol) {
			return u.Name
		}
	}
	return ""
}

// checkPorts refuses ports that others have on the address.
func (p listenerPlanner) checkPorts() {
	for _, t := range p.targets {
		for _, f := range p.families {
			a := p.external[f]
			if !a.IsValid() || t.occupies(a) {
				continue
			}
			if name := p.portTaken(a, t.listener); name != "" {
				p.refuse(PortTaken, "port %d/%s of the address %s belongs to %q: use another port or another address",
					t.listener.Port, t.listener.Protocol, a, name)
			}
		}
	}
}

// occupies reports whether the listener has something on an address already.
func (t *target) occupies(a netip.Addr) bool {
	vs := t.service.object
	return t.service.exists() && slices.Contains(vs.VIPs, a) && vs.Port == t.listener.Port ||
		t.rule.exists() && t.rule.object.External == a
}
