// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// planClaims plans claims of floating IPs: it allocates and marks the addresses that need it, releases those that nothing
// uses, and returns those to be stored first.
func planClaims(in input, front frontend) ([]netip.Addr, outcome) {
	all := in.outcome()
	if front.internal {
		all.add(releaseClaims(in, func(netip.Addr) bool { return false }))
		return intentOf(in, front), all
	}
	for _, a := range front.addresses() {
		all.add(claim(in, a))
	}
	all.add(releaseClaims(in, front.has))
	return intentOf(in, front), all
}

// claim allocates and marks an address of an IP Space, as far as that is not done. Services that share one may do so at
// the same time: the second finds it allocated. If each left that to the other, none would.
func claim(in input, a netip.Addr) outcome {
	out := in.outcome()
	c, allocated := in.observed.claimOf(a)
	space, inSpace := in.observed.Gateway.spaceOf(a)
	switch {
	case allocated && in.owned.intends(c) && !in.owned.claimed(c):
		out.step(phaseClaim, markClaim(c, in.desired.Owner))
	case allocated, !inSpace:
	case space.Full, isLost(in.observed, a):
		out.notice(AddressInUse,
			"the address %s is no longer allocated and cannot be allocated again: another organization has it, "+
				"or the quota of the IP Space %q is exhausted. Clients may not reach it: request another address", a,
			space.Name)
	default:
		want := Claim{
			Space:       Ref{space.ID, space.Name},
			Value:       a,
			Description: Marker{Owner: in.desired.Owner}.String(),
		}
		out.step(phaseClaim, Step{
			Verb:    Create,
			Kind:    KindAddress,
			Name:    a.String(),
			Address: &want,
			Stored:  slices.Contains(in.desired.Intent, a),
		})
		out.step(phaseClaim, Step{
			Verb:    Mark,
			Kind:    KindAddress,
			Name:    a.String(),
			Address: &want,
		})
	}
	return out
}

// isLost reports whether another organization has an address.
func isLost(o Observed, a netip.Addr) bool {
	return slices.ContainsFunc(o.Taken, func(u loadbalancer.Use) bool { return u.Address == a && u.Kind == KindAddress })
}

// markClaim describes a claim as an owner's; as no one's, if the owner is empty.
func markClaim(c Claim, owner loadbalancer.Owner) Step {
	want := Claim{
		Space: c.Space,
		Value: c.Value,
	}
	if owner != (loadbalancer.Owner{}) {
		want.Description = Marker{Owner: owner}.String()
	}
	return Step{
		Verb:              Mark,
		Kind:              KindAddress,
		Name:              c.Value.String(),
		ID:                c.ID,
		Address:           &want,
		FormerDescription: c.Description,
	}
}

// releaseClaims releases claims of the owner that are not wanted any more. One that others use passes to them.
func releaseClaims(in input, wanted func(netip.Addr) bool) outcome {
	all := in.outcome()
	for _, c := range in.observed.Claims {
		isOurs := in.owned.claimed(c) || in.owned.intends(c) && !c.Used
		if wanted(c.Value) || !isOurs {
			continue
		}
		if !all.need(Forwardings) {
			return all // rules of others may be on it
		}
		all.add(leaveClaim(in, c))
	}
	return all
}

// leaveClaim deletes a claim, or passes it to another that uses its address.
func leaveClaim(in input, c Claim) outcome {
	out := in.outcome()
	others := in.owned.others
	i := slices.IndexFunc(others, func(u loadbalancer.Use) bool { return u.Address == c.Value && !u.Reserved })
	switch {
	case i < 0:
		out.step(phaseRelease, Step{
			Verb: Delete,
			Kind: KindAddress,
			Name: c.Value.String(),
			ID:   c.ID,
			Address: &Claim{
				Space: c.Space,
				Value: c.Value,
			},
		})
	case others[i].Owner.UID != "":
		out.step(phaseClaim, markClaim(c, others[i].Owner))
	case in.owned.claimed(c):
		out.notice(AddressShared, "the address %s remains allocated because %q uses it", c.Value, others[i].Name)
		out.step(phaseClaim, markClaim(c, loadbalancer.Owner{}))
	}
	return out
}

// intentOf names the addresses to be stored before the first step: those that are used for the first time and are not
// named by the Service, those that are allocated for it, and those that are stored and allocated but not marked.
func intentOf(in input, front frontend) []netip.Addr {
	var intent []netip.Addr
	for _, f := range front.families {
		if isToBeStored(in, front, f) {
			intent = append(intent, front.external[f])
		}
	}
	stored := in.desired.Intent
	if !slices.ContainsFunc(intent, func(a netip.Addr) bool { return !slices.Contains(stored, a) }) {
		return nil
	}
	for _, a := range stored {
		if c, ok := in.observed.claimOf(a); ok && in.owned.intends(c) && !slices.Contains(intent, a) {
			intent = append(intent, a)
		}
	}
	return intent
}

// isToBeStored reports whether the address of a family has to be stored.
func isToBeStored(in input, front frontend, f loadbalancer.Family) bool {
	a := front.external[f]
	if !a.IsValid() {
		return false
	}
	c, allocated := in.observed.claimOf(a)
	if allocated && slices.Contains(in.observed.VMNotOwned, c.ID) {
		return false
	}
	_, inSpace := in.observed.Gateway.spaceOf(a)
	return slices.Contains(in.desired.Intent, a) || front.unused[f] && !slices.Contains(in.desired.Requested, a) ||
		!allocated && inSpace && !front.internal
}
