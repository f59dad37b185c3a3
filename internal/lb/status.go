package lb

import (
	"fmt"
	"net/netip"
	"slices"
)

// A statusPlanner fills the status of a plan.
type statusPlanner struct{ *planner }

// status says what clients can use of what is observed.
func (p statusPlanner) status() {
	s := &p.plan.Status
	s.Objects = p.objects()
	pending := 0
	for _, t := range p.targets {
		port := PortStatus{Protocol: t.listener.Protocol, Port: t.listener.Port, Health: t.service.object.Health, Problem: p.problemOf(t)}
		if port.Problem != "" {
			pending++
		}
		s.Ports = append(s.Ports, port)
	}
	if !p.d.Absent && len(p.plan.Refusals) == 0 {
		p.conclude(pending)
	}
}

// conclude says how far the load balancer is, when so many ports are not right yet.
func (p statusPlanner) conclude(pending int) {
	s := &p.plan.Status
	for _, f := range p.families {
		if a := p.external[f]; a.IsValid() && !slices.ContainsFunc(p.targets, func(t *target) bool { return !t.reachable(a, p.nat()) }) {
			s.Addresses = append(s.Addresses, a)
		}
	}
	switch {
	case len(p.plan.Steps) > 0:
	case p.noteStuck():
	case pending > 0:
		p.plan.Wait = fmt.Sprintf("virtual services are being realized (%d of %d ready)", len(p.targets)-pending, len(p.targets))
	}
	if s.Ready = p.plan.Done(); s.Ready {
		p.plan.Unused = slices.DeleteFunc(slices.Clone(p.d.Intent), func(a netip.Addr) bool { return p.external[FamilyOf(a)] == a })
	}
}

// Problems of ports.
const (
	problemMissing = "NotCreated"
	problemPending = "Pending"
	problemFailed  = "RealizationFailed"
)

func (p statusPlanner) problemOf(t *target) string {
	var states []State
	for _, x := range p.parts(t) {
		states = append(states, x.State)
	}
	missing := !t.hasService() || !t.hasPool()
	if p.nat() {
		missing = missing || !t.hasRule() || !t.hasProfile()
	}
	switch {
	case slices.Contains(states, Failed), slices.Contains(states, Broken):
		return problemFailed
	case missing:
		return problemMissing
	case slices.Contains(states, Pending):
		return problemPending
	}
	return ""
}

// A kindred is an object with its kind.
type stateOf struct {
	Object

	kind Kind
}

// parts are what stands for a listener; of what does not stand, the zero value.
func (p statusPlanner) parts(t *target) []stateOf {
	return []stateOf{
		{p.set, KindSet}, {t.pool.base, KindPool}, {t.service.base, KindService}, {t.profile.base, KindProfile}, {t.rule.base, KindRule},
	}
}

// stuckOn notes what VCD does not make.
func (p statusPlanner) noteStuck() bool {
	for _, t := range p.targets {
		for _, x := range p.parts(t) {
			f := Finding{RealizationFailed, fmt.Sprintf("VCD could not realize the %s %q, and neither when it was written again: "+
				"ask the provider what is wrong; it is tried again now and then", x.kind, x.Name)}
			if x.State == Broken && !slices.Contains(p.plan.Stuck, f) {
				p.plan.Stuck = append(p.plan.Stuck, f)
			}
		}
	}
	return len(p.plan.Stuck) > 0
}

// reachable says whether clients reach a listener on an address.
func (t *target) reachable(a netip.Addr, nat bool) bool {
	if s := t.service.base.State; !t.hasService() || s == Failed || s == Broken {
		return false
	}
	if nat {
		return t.hasRule() && t.rule.object.External == a
	}
	return slices.Contains(t.service.object.VIPs, a)
}

// objects are all that the owner has.
func (p statusPlanner) objects() []ObjectStatus {
	var out []ObjectStatus
	add := func(kind Kind, o Object, a netip.Addr) {
		_, _, old := oldName(p.d.Owner.Cluster, kind, o.Name)
		out = append(out, ObjectStatus{kind, o.ID, o.Name, a, old})
	}
	for _, x := range p.all.services {
		a := netip.Addr{}
		if len(x.object.VIPs) > 0 {
			a = x.object.VIPs[0]
		}
		add(KindService, x.base, a)
	}
	for _, x := range p.all.pools {
		add(KindPool, x.base, netip.Addr{})
	}
	for _, x := range p.all.rules {
		add(KindRule, x.base, x.object.External)
	}
	for _, x := range p.all.profiles {
		add(KindProfile, x.base, netip.Addr{})
	}
	for _, x := range p.all.firewall {
		add(KindFirewall, x.base, netip.Addr{})
	}
	for _, x := range p.all.certificates {
		add(KindCertificate, x.base, netip.Addr{})
	}
	for _, c := range p.all.claims {
		out = append(out, ObjectStatus{Kind: KindAddress, ID: c.ID, Name: c.Value.String(), Address: c.Value})
	}
	return out
}
