package lb

import (
	"net/netip"
	"slices"
)

// A removal plans the deletion of what is the owner's and not wanted.
type removal struct{ *planner }

// leftovers removes what no listener uses any more.
func (p removal) leftovers() {
	rules := phaseRemove
	if !p.nat() {
		rules = phaseFree // rules are observed only as long as a virtual service shows that it is behind NAT
	}
	removeEach(p.planner, rules, KindRule, p.own.rules)
	removeEach(p.planner, rules, KindProfile, p.own.profiles)
	removeEach(p.planner, phaseRemove, KindService, p.own.services)
	removeEach(p.planner, phaseRemove, KindPool, p.own.pools)
	removeEach(p.planner, phaseRemove, KindCertificate, slices.DeleteFunc(p.own.certificates, func(x owned[CertificateItem]) bool {
		return slices.ContainsFunc(p.targets, func(t *target) bool { return t.certificate.Name == x.base.Name })
	}))
}

func removeEach[T any](p *planner, ph phase, kind Kind, list []owned[T]) {
	for _, x := range list {
		p.remove(ph, kind, x.base)
	}
}

// absent removes everything of the owner: first what clients reach, last what nothing else of the cluster needs.
func (p removal) absent() Plan {
	if !p.need(Forwardings | Certificates | Firewall) {
		return Plan{Needs: p.needs}
	}
	p.noteDoubtful()
	p.noteStrays()
	if !p.d.Owner.WholeCluster() {
		p.removeAll()
	}
	if !p.o.Others && !p.d.Accompanied {
		for _, s := range p.o.Sets {
			if m, ok := ParseMarker(s.Description); ok && m.Owner.Is(Owner{Cluster: p.d.Owner.Cluster}) {
				p.remove(phaseRelease, KindSet, s.Object)
			}
		}
	}
	return p.result()
}

func (p removal) removeAll() {
	removeEach(p.planner, phaseRemove, KindRule, p.own.rules)
	removeEach(p.planner, phaseRemove, KindProfile, p.own.profiles)
	removeEach(p.planner, phaseRemove, KindService, p.own.services)
	removeEach(p.planner, phaseRemove, KindFirewall, p.own.firewall)
	removeEach(p.planner, phaseRemove, KindPool, p.own.pools)
	removeEach(p.planner, phaseRemove, KindCertificate, p.own.certificates)
	claimPlanner{p.planner}.release(func(netip.Addr) bool { return false })
}
