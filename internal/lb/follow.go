// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Follow plans only what keeps the members of an existing load balancer in step with the nodes while what is
// desired is refused. Of the desired, only owner, members and proofs of ownership count; nothing is created and nothing
// removed. It is pure and total. The plan has needs or steps, and no status.
func Follow(d Desired, o Observed, c Capabilities) Plan {
	if d.Absent {
		return Plan{}
	}
	in := newInput(d, o, c)
	all := in.outcome()
	switch {
	case in.owned.unread && !all.need(FullPools):
		return Plan{Needs: all.needs}
	case len(in.owned.doubtful) > 0 && !all.need(Forwardings): // a rule may prove whose they are
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
	return Plan{Plan: loadbalancer.Plan{Steps: all.stepsBut(func(Step) bool { return false })}}
}

// followSets updates the IP sets that exist with the nodes of their families.
func followSets(in input) outcome {
	all := in.outcome()
	for _, f := range []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6} {
		if sets := clusterSets(in, setKey(f)); len(sets) > 0 && len(in.desired.members(f)) > 0 {
			all.add(updateSet(in, sets[0], f))
		}
	}
	return all
}

// followPool updates a pool that lists its members with the nodes of their family. One of cloud provider interface
// 1.6.1 gets a marker with that, and keeps its monitors.
func followPool(in input, x owned[Pool]) outcome {
	out := in.outcome()
	have := x.object
	if have.Hints != nil && have.Hints.ByGroup || !have.Full && !out.need(FullPools) || have.Group != (Ref{}) {
		return out // it does not list its members, as far as that is known
	}
	f, known := familyOf(in.desired, have)
	if !known {
		return out
	}
	m := x.marker
	want := Pool{
		NodePort: have.NodePort,
		Members:  limited(in, in.desired.members(f)),
		Monitors: writtenMonitors(m),
		Sticky:   have.Sticky,
	}
	if x.old {
		m = Marker{Owner: in.desired.Owner, Listener: x.key}
		want.Monitors = nil
	}
	if len(want.Members) == 0 && !in.desired.OwnMembers || want.sameMembers(have) {
		return out // a pool without members would help no client
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

// familyOf returns the family of a pool's members, those that there are or, where there may be none, those that there
// should be.
func familyOf(d Desired, have Pool) (loadbalancer.Family, bool) {
	switch {
	case len(have.Members) > 0:
		return loadbalancer.FamilyOf(have.Members[0]), true
	case d.OwnMembers && len(d.Families) > 0:
		return d.Families[0], true
	}
	return "", false
}

// writtenMonitors are the monitors that a pool was given, as its marker shows.
func writtenMonitors(m Marker) []Monitor {
	switch {
	case m.Probe == MonitorNone:
		return nil
	case m.Probe != "":
		return []Monitor{m.Probe}
	case strings.HasPrefix(m.Listener, "udp-"):
		return []Monitor{usualMonitor(loadbalancer.UDP)}
	}
	return []Monitor{usualMonitor(loadbalancer.TCP)}
}
