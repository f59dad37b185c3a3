// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Follow plans only the changes that keep the members of an existing load balancer in sync with the nodes, because the
// desired state is refused. It uses only the owner, the members and the proofs of ownership, and creates or removes
// nothing. It is pure and total. The plan has needs or steps, but no status.
func Follow(d Desired, o Observed, c Capabilities) Plan {
	if d.Absent {
		return Plan{}
	}
	in := newInput(d, o, c)
	all := in.outcome()
	switch {
	case in.owned.unread && !all.need(FullPools):
		return Plan{Needs: all.needs}
	case len(in.owned.doubtful) > 0 && !all.need(Forwardings): // a rule may prove their owner
		return Plan{Needs: all.needs}
	case len(in.owned.pools) == 0:
		return Plan{}
	}
	if !d.OwnMembers {
		all.add(followSets(in))
	}
	for _, x := range in.owned.pools {
		all.add(followPool(in, x))
	}
	if all.needs != 0 {
		return Plan{Needs: all.needs}
	}
	return Plan{Plan: loadbalancer.Plan{Steps: all.stepsExcept(func(Step) bool { return false })}}
}

// followSets updates existing IP sets with the nodes of their families.
func followSets(in input) outcome {
	all := in.outcome()
	for _, f := range []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6} {
		if sets := clusterSets(in, setKey(f)); len(sets) > 0 && len(in.desired.members(f)) > 0 {
			all.add(updateSet(in, sets[0], f))
		}
	}
	return all
}

// followPool updates a pool that lists its members with the nodes of their family. A pool of cloud provider interface
// 1.6.1 also gets a marker, and keeps its monitors.
func followPool(in input, x owned[Pool]) outcome {
	out := in.outcome()
	have := x.object
	if have.Hints != nil && have.Hints.ByGroup || !have.Full && !out.need(FullPools) || have.Group != (Ref{}) {
		return out // as far as known, it does not list its members
	}
	f, known := familyOf(in.desired, have)
	if !known {
		return out
	}
	m := x.marker
	want := Pool{
		NodePort: have.NodePort,
		Members:  limitMembers(in, in.desired.members(f)),
		Monitors: writtenMonitors(m),
		Check:    have.Check,
		Sticky:   have.Sticky,
	}
	if x.old {
		m = Marker{Owner: in.desired.Owner, Listener: x.key}
		want.Monitors = nil
	}
	if len(want.Members) == 0 && !in.desired.OwnMembers || want.sameMembers(have) {
		return out // an empty pool would help no client
	}
	m.Wrote = want.hash()
	want.Description = describe(x.Description, m)
	out.step(phasePool, Step{
		Verb: Update,
		Kind: KindPool,
		Name: x.Name,
		ID:   x.ID,
		Pool: &want,
	})
	return out
}

// familyOf returns the family of a pool's members: that of the existing members, or, if there may be none, the desired
// one.
func familyOf(d Desired, have Pool) (loadbalancer.Family, bool) {
	switch {
	case len(have.Members) > 0:
		return loadbalancer.FamilyOf(have.Members[0]), true
	case d.OwnMembers && len(d.Families) > 0:
		return d.Families[0], true
	}
	return "", false
}

// writtenMonitors returns the monitors that were written to a pool, according to its marker.
func writtenMonitors(m Marker) []Monitor {
	switch {
	case m.Probe == MonitorNone:
		return nil
	case m.Probe != "":
		return []Monitor{m.Probe}
	case strings.HasPrefix(m.Listener, "udp-"):
		return []Monitor{defaultMonitor(loadbalancer.UDP)}
	}
	return []Monitor{defaultMonitor(loadbalancer.TCP)}
}
