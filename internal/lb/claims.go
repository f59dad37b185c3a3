// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// planClaims plans claims of floating IPs. It allocates and marks addresses, releases unused ones, and returns the
// addresses to record first.
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

// claim allocates and marks an address of an IP Space, unless that is done. Services that share an address may both
// allocate it: the second one finds it allocated. If each relied on the other, neither would allocate it.
func claim(in input, a netip.Addr) outcome {
	out := in.outcome()
	c, allocated := in.observed.claimOf(a)
	space, inSpace := in.observed.Gateway.spaceOf(a)
	switch {
	case allocated && in.owned.intends(c) && !in.owned.claimed(c):
		out.step(phaseClaim, markClaim(c, in.desired.Owner))
	case allocated, !inSpace:
	case space.Full, isTakenElsewhere(in.observed, a):
		out.notice(AddressInUse,
			"the address %s is no longer allocated and cannot be allocated again: another organization has it, or the quota of the IP Space %q is exhausted. Clients may not reach it: request another address", a,
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

// isTakenElsewhere reports whether another organization has an address.
func isTakenElsewhere(o Observed, a netip.Addr) bool {
	return slices.ContainsFunc(o.Taken, func(u loadbalancer.Use) bool { return u.Address == a && u.Kind == KindAddress })
}

// markClaim returns the step that writes the owner's marker on a claim, or removes the marker if the owner is zero.
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

// releaseClaims releases claims that the owner no longer needs. A claim that others use is passed to them.
func releaseClaims(in input, wanted func(netip.Addr) bool) outcome {
	all := in.outcome()
	for _, c := range in.observed.Claims {
		isOurs := in.owned.claimed(c) || in.owned.intends(c) && !c.Used
		if wanted(c.Value) || !isOurs {
			continue
		}
		if !all.need(Forwardings) {
			return all // rules of others may use it
		}
		all.add(leaveClaim(in, c))
	}
	return all
}

// leaveClaim releases a claim, or passes it to another user of its address.
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

// intentOf returns the addresses to record before the first step: addresses that are used for the first time and not
// requested by the Service, addresses that are allocated for it, and addresses that are recorded and allocated but not
// marked.
func intentOf(in input, front frontend) []netip.Addr {
	var intent []netip.Addr
	for _, f := range front.families {
		if mustBeStored(in, front, f) {
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

// mustBeStored reports whether the address of a family must be recorded.
func mustBeStored(in input, front frontend, f loadbalancer.Family) bool {
	a := front.external[f]
	if !a.IsValid() {
		return false
	}
	c, allocated := in.observed.claimOf(a)
	if allocated && slices.Contains(in.observed.ForeignClaims, c.ID) {
		return false
	}
	_, inSpace := in.observed.Gateway.spaceOf(a)
	return slices.Contains(in.desired.Intent, a) || front.unused[f] && !slices.Contains(in.desired.Requested, a) ||
		!allocated && inSpace && !front.internal
}
