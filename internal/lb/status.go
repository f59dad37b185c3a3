// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"net/netip"
	"slices"
)

// Problems of ports.
const (
	problemMissing = "NotCreated"
	problemPending = "Pending"
	problemFailed  = "RealizationFailed"
)

// A statusPlanner fills the status of a plan: what clients can use of what is observed.
type statusPlanner struct{ *planner }

func (p statusPlanner) plan() {
	s := &p.out.Status
	s.Objects = p.objects()
	pending := 0
	for _, t := range p.targets {
		port := PortStatus{
			Protocol: t.listener.Protocol,
			Port:     t.listener.Port,
			Health:   t.service.object.Health,
			Problem:  p.problem(t),
		}
		if port.Problem != "" {
			pending++
		}
		s.Ports = append(s.Ports, port)
	}
	if !p.d.Absent && len(p.out.Refusals) == 0 {
		p.conclude(pending)
	}
}

// conclude decides how far the load balancer is, with so many ports pending.
func (p statusPlanner) conclude(pending int) {
	s := &p.out.Status
	for _, f := range p.families {
		a := p.external[f]
		if a.IsValid() && !slices.ContainsFunc(p.targets, func(t *target) bool { return !t.reachable(a, p.nat()) }) {
			s.Addresses = append(s.Addresses, a)
		}
	}
	if len(p.out.Steps) == 0 {
		if p.out.Stuck = p.stuck(); len(p.out.Stuck) == 0 && pending > 0 {
			p.out.Wait = fmt.Sprintf("virtual services are being realized (%d of %d ready)", len(p.targets)-pending,
				len(p.targets))
		}
	}
	if s.Ready = p.out.Done(); s.Ready {
		p.out.Unused = slices.DeleteFunc(slices.Clone(p.d.Intent), func(a netip.Addr) bool {
			c, _ := p.o.claimOf(a)
			return p.external[FamilyOf(a)] == a && !slices.Contains(p.o.NotOurs, c.ID)
		})
	}
}

// parts are the objects of a listener, each of the kind of the same index; those that do not exist are zero.
func (p statusPlanner) parts(t *target) []Object {
	return []Object{p.set, t.pool.Object, t.service.Object, t.profile.Object, t.rule.Object}
}

var partKinds = []Kind{KindSet, KindPool, KindService, KindProfile, KindRule}

func (p statusPlanner) problem(t *target) string {
	has := func(states ...State) bool {
		return slices.ContainsFunc(p.parts(t), func(o Object) bool { return slices.Contains(states, o.State) })
	}
	switch {
	case has(Failed, Broken):
		return problemFailed
	case !t.service.exists(), !t.pool.exists(), p.nat() && (!t.rule.exists() || !t.profile.exists()):
		return problemMissing
	case has(Pending):
		return problemPending
	}
	return ""
}

// stuck names what VCD fails to realize.
func (p statusPlanner) stuck() []Finding {
	var out []Finding
	for _, t := range p.targets {
		for i, x := range p.parts(t) {
			f := Finding{
				RealizationFailed,
				fmt.Sprintf("VCD could not realize the %s %q, and neither when it was written again: "+
					"ask the provider what is wrong; it is tried again now and then", partKinds[i], x.Name),
			}
			if x.State == Broken && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// reachable reports whether clients reach a listener on an address.
func (t *target) reachable(a netip.Addr, nat bool) bool {
	if s := t.service.State; !t.service.exists() || s == Failed || s == Broken {
		return false
	}
	if nat {
		return t.rule.exists() && t.rule.object.External == a
	}
	return slices.Contains(t.service.object.VIPs, a)
}

// objects are all that the owner has.
func (p statusPlanner) objects() []ObjectStatus {
	var out []ObjectStatus
	add := func(kind Kind, o Object, addresses ...netip.Addr) {
		_, _, old := oldName(p.d.Owner.Cluster, kind, o.Name)
		out = append(out, ObjectStatus{kind, o.ID, o.Name, addresses, old})
	}
	for _, x := range p.all.services {
		add(KindService, x.Object, slices.Clone(x.object.VIPs)...)
	}
	for _, x := range p.all.pools {
		add(KindPool, x.Object)
	}
	for _, x := range p.all.rules {
		add(KindRule, x.Object, x.object.External)
	}
	for _, x := range p.all.profiles {
		add(KindProfile, x.Object)
	}
	for _, x := range p.all.firewall {
		add(KindFirewall, x.Object)
	}
	for _, x := range p.all.certificates {
		add(KindCertificate, x.Object)
	}
	for _, c := range p.all.claims {
		add(KindAddress, Object{ID: c.ID, Name: c.Value.String()}, c.Value)
	}
	return out
}
