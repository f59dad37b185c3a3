// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Problems of ports.
const (
	problemMissing = "NotCreated"
	problemPending = "Pending"
	problemFailed  = "RealizationFailed"
)

// conclude builds the plan from the outcome of all parts. The plan has only needs if facts are missing, and no steps if
// something is refused.
func conclude(in input, lb design, all outcome) Plan {
	if len(all.refusals) == 0 && all.needs != 0 {
		return Plan{Needs: all.needs}
	}
	plan := Plan{Plan: loadbalancer.Plan{
		Refusals: all.refusals,
		Notices:  slices.Compact(all.notices),
		Status: loadbalancer.Status{
			Ports:   portsOf(lb),
			Objects: objectsOf(in.desired.Owner, in.owned),
		},
	}}
	if len(all.refusals) > 0 {
		return plan
	}
	plan.Intent = lb.intent
	plan.Steps = all.stepsExcept(func(s Step) bool { return isDeferred(in.desired, s) })
	if in.desired.Absent {
		return plan
	}
	plan.Status.Addresses = reachableAddresses(lb)
	if len(plan.Steps) == 0 {
		plan.Stuck = stuck(lb)
	}
	if len(plan.Steps) == 0 && len(plan.Stuck) == 0 {
		plan.Wait = waitText(plan.Status.Ports)
	}
	if plan.Done() {
		plan.Unused = unusedIntent(in, lb.frontend)
	}
	return plan
}

// isDeferred reports whether a step is postponed until the owner has no objects on other gateways.
func isDeferred(d Desired, s Step) bool {
	return d.Elsewhere && s.Deferrable() && (s.Kind == KindAddress || !d.Unseen)
}

// portsOf returns the status of the listeners whose objects are known.
func portsOf(lb design) []loadbalancer.PortStatus {
	var ports []loadbalancer.PortStatus
	for _, b := range lb.bindings {
		ports = append(ports, loadbalancer.PortStatus{
			Protocol: b.listener.Protocol,
			Port:     b.listener.Port,
			Problem:  problemOf(lb, b),
		})
	}
	return ports
}

// problemOf returns the problem of a listener, or an empty string.
func problemOf(lb design, b binding) string {
	has := func(states ...State) bool {
		return slices.ContainsFunc(partsOf(lb, b), func(p part) bool { return slices.Contains(states, p.object.State) })
	}
	switch {
	case has(Failed, Broken):
		return problemFailed
	case !b.service.exists(), !b.pool.exists(), lb.frontend.translated && (!b.rule.exists() || !b.profile.exists()):
		return problemMissing
	case has(Pending):
		return problemPending
	}
	return ""
}

// A part is an object that a listener needs. It is zero if it does not exist.
type part struct {
	kind   loadbalancer.Kind
	object Object
}

// partsOf returns the objects that a listener needs.
func partsOf(lb design, b binding) []part {
	return []part{
		{KindSet, lb.nodes.object},
		{KindPool, b.pool.Object},
		{KindService, b.service.Object},
		{KindProfile, b.profile.Object},
		{KindRule, b.rule.Object},
	}
}

// reachableAddresses returns the addresses on which clients reach all listeners.
func reachableAddresses(lb design) []netip.Addr {
	var addresses []netip.Addr
	for _, a := range lb.frontend.addresses() {
		if !slices.ContainsFunc(lb.bindings, func(b binding) bool { return !b.isReachable(a, lb.frontend.translated) }) {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

// isReachable reports whether clients reach a listener on an address.
func (b binding) isReachable(a netip.Addr, translated bool) bool {
	if s := b.service.State; !b.service.exists() || s == Failed || s == Broken {
		return false
	}
	if translated {
		return b.rule.exists() && b.rule.object.External == a
	}
	return slices.Contains(b.service.object.VIPs, a)
}

// stuck returns findings for the objects that VCD fails to realize.
func stuck(lb design) []loadbalancer.Finding {
	var out []loadbalancer.Finding
	for _, b := range lb.bindings {
		for _, p := range partsOf(lb, b) {
			f := loadbalancer.Finding{
				Reason:  RealizationFailed,
				Message: fmt.Sprintf("VCD could not realize the %s %q, even after a retry: ask the provider for the cause; the controller retries periodically", p.kind, p.object.Name),
			}
			if p.object.State == Broken && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// waitText returns a text with the number of ready ports, or an empty string if all are ready.
func waitText(ports []loadbalancer.PortStatus) string {
	ready := 0
	for _, p := range ports {
		if p.Problem == "" {
			ready++
		}
	}
	if ready == len(ports) {
		return ""
	}
	return fmt.Sprintf("virtual services are being realized (%d of %d ready)", ready, len(ports))
}

// unusedIntent returns the recorded addresses that the load balancer no longer uses.
func unusedIntent(in input, front frontend) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(in.desired.Intent), func(a netip.Addr) bool {
		c, _ := in.observed.claimOf(a)
		return front.has(a) && !slices.Contains(in.observed.ForeignClaims, c.ID)
	})
}

// objectsOf returns all objects of the owner.
func objectsOf(owner loadbalancer.Owner, inv inventory) []loadbalancer.Object {
	var out []loadbalancer.Object
	add := func(kind loadbalancer.Kind, o Object, addresses ...netip.Addr) {
		_, _, old := oldName(owner.Cluster, kind, o.Name)
		out = append(out, loadbalancer.Object{
			Kind:      kind,
			ID:        o.ID,
			Name:      o.Name,
			Addresses: addresses,
			Inherited: old,
		})
	}
	for _, x := range inv.services {
		add(KindService, x.Object, slices.Clone(x.object.VIPs)...)
	}
	for _, x := range inv.pools {
		add(KindPool, x.Object)
	}
	for _, x := range inv.rules {
		add(KindRule, x.Object, x.object.External)
	}
	for _, x := range inv.profiles {
		add(KindProfile, x.Object)
	}
	for _, x := range inv.firewall {
		add(KindFirewall, x.Object)
	}
	for _, x := range inv.certificates {
		add(KindCertificate, x.Object)
	}
	for _, c := range inv.claims {
		add(KindAddress, Object{ID: c.ID, Name: c.Value.String()}, c.Value)
	}
	return out
}
