// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
)

// planAbsence removes all objects of the owner. Objects that clients reach are removed first, and those that nothing
// else in the cluster needs last.
func planAbsence(in input) Plan {
	all := in.outcome()
	if in.owned.unread {
		all.need(FullPools)
	}
	if !all.need(Forwardings | Certificates | Firewall) {
		return Plan{Needs: all.needs}
	}
	all.add(reportForeign(in))
	if !in.desired.Owner.WholeCluster() {
		all.add(removeAll(in))
	}
	if !in.observed.Others && !in.desired.Accompanied && !in.desired.Owner.IsEndpoint() {
		for _, s := range clusterSets(in, "") {
			all.remove(phaseRelease, KindSet, s.Object)
		}
	}
	return conclude(in, design{}, all)
}

// removeAll removes the objects that belong to the owner alone.
func removeAll(in input) outcome {
	out := in.outcome()
	removeEach(&out, phaseRemove, KindRule, in.owned.rules)
	removeEach(&out, phaseRemove, KindProfile, in.owned.profiles)
	removeEach(&out, phaseRemove, KindService, in.owned.services)
	removeEach(&out, phaseRemove, KindFirewall, in.owned.firewall)
	removeEach(&out, phaseRemove, KindPool, in.owned.pools)
	removeEach(&out, phaseRemove, KindCertificate, in.owned.certificates)
	out.add(releaseClaims(in, func(netip.Addr) bool { return false }))
	return out
}

// removeUnbound removes objects that no listener uses. Firewall rules are removed by [planFirewall].
func removeUnbound(in input, lb design) outcome {
	out := in.outcome()
	removeEach(&out, phaseRemove, KindRule, lb.unbound.rules)
	removeEach(&out, phaseRemove, KindProfile, lb.unbound.profiles)
	removeEach(&out, phaseRemove, KindService, lb.unbound.services)
	removeEach(&out, phaseRemove, KindPool, lb.unbound.pools)
	for _, x := range in.owned.certificates {
		if !lb.uses(x.Name) {
			out.remove(phaseRemove, KindCertificate, x.Object)
		}
	}
	return out
}

// uses reports whether a listener uses the certificate with an alias.
func (lb design) uses(alias string) bool {
	return slices.ContainsFunc(lb.bindings, func(b binding) bool { return lb.certificates[b.key()].Name == alias })
}
