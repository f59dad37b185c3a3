// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// oneArm assigns addresses of the one-arm range to virtual services.
type oneArm struct {
	in       input
	external netip.Addr // the address that clients use
	used     map[netip.Addr]bool
}

// place assigns addresses to virtual services: their current ones, else a common one if virtual services can share an
// address, else one for each.
func (o *oneArm) place(bindings []binding) ([]binding, outcome) {
	out := o.in.outcome()
	placed := slices.Clone(bindings)
	common := o.keep(placed)
	for i, b := range placed {
		if len(b.vips) > 0 {
			continue
		}
		a := common
		if !o.in.can.SharedVIP || !a.IsValid() || o.in.owned.occupantOf(a, b.listener) != "" {
			a = o.free()
		}
		if !a.IsValid() {
			arm := o.in.desired.OneArm
			out.refuse(NoFreeAddress, "no address of the one-arm range %s to %s is free: configure a larger range", arm.First, arm.Last)
			return placed, out
		}
		placed[i].vips = []netip.Addr{a}
		o.used[a] = true
		common = a
	}
	return placed, out
}

// keep keeps the current addresses of virtual services. It returns the lowest of them.
func (o *oneArm) keep(bindings []binding) netip.Addr {
	var lowest netip.Addr
	for i, b := range bindings {
		a := o.current(b)
		if !a.IsValid() || !o.in.can.SharedVIP && o.used[a] {
			continue
		}
		bindings[i].vips = []netip.Addr{a}
		o.used[a] = true
		if !lowest.IsValid() || a.Less(lowest) {
			lowest = a
		}
	}
	return lowest
}

// current returns the address behind NAT that a listener already has.
func (o *oneArm) current(b binding) netip.Addr {
	arm := o.in.desired.OneArm
	inside := b.rule.object.Internal
	for _, a := range b.service.object.VIPs {
		if a != o.external && (arm.Contains(a) || b.rule.exists() && inside == a) {
			return a
		}
	}
	if b.rule.exists() && arm.Contains(inside) && o.in.owned.occupantOf(inside, b.listener) == "" {
		return inside
	}
	return netip.Addr{}
}

// free returns the first unused address of the one-arm range.
func (o *oneArm) free() netip.Addr {
	arm := o.in.desired.OneArm
	for i, a := 0, arm.First; arm.Contains(a) && i < maxScanned; i, a = i+1, a.Next() {
		if !o.used[a] && !slices.ContainsFunc(o.in.owned.others, func(u loadbalancer.Use) bool { return u.Address == a }) {
			return a
		}
	}
	return netip.Addr{}
}
