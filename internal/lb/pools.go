// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"crypto/sha256"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// planPools plans the pool of each listener and returns the references to them.
func planPools(in input, lb design) (map[string]Ref, outcome) {
	members, all := poolMembers(in, lb)
	pools := map[string]Ref{}
	for _, b := range lb.bindings {
		want := Pool{
			NodePort:  b.listener.NodePort,
			Group:     lb.nodes.ref,
			Members:   members,
			Monitors:  b.listener.monitors(),
			Check:     b.listener.check(),
			Sticky:    in.desired.Sticky,
			Algorithm: in.desired.Algorithm,
		}
		if want.Check != (PoolCheck{}) {
			want.Monitors = nil
		}
		ref, out := planPool(in, b, want)
		pools[b.key()] = ref
		all.add(out)
	}
	return pools, all
}

// poolMembers returns the members that pools list; nil if pools use a group.
func poolMembers(in input, lb design) ([]netip.Addr, outcome) {
	out := in.outcome()
	if lb.nodes.ref != (Ref{}) {
		return nil, out
	}
	members := in.desired.members(lb.frontend.families[0])
	if limit := in.can.MaxMembers; limit != 0 && len(members) > limit {
		out.notice(TooManyMembers, "%d of %d nodes are members of the load balancer, which is the limit of a pool: grant the user the right to manage security groups to include all nodes", limit, len(members))
	}
	return limitMembers(in, members), out
}

// limitMembers returns as many members as a pool supports, sorted. The subset is stable when other nodes join or leave.
func limitMembers(in input, members []netip.Addr) []netip.Addr {
	limit := in.can.MaxMembers
	if limit == 0 || len(members) <= limit {
		return members
	}
	rank := map[netip.Addr][sha256.Size]byte{}
	for _, a := range members {
		rank[a] = sha256.Sum256([]byte(in.desired.Owner.UID + a.String()))
	}
	ranked := slices.SortedFunc(slices.Values(members), func(a, b netip.Addr) int {
		x := rank[a]
		y := rank[b]
		return slices.Compare(x[:], y[:])
	})
	return sorted(ranked[:limit])
}

// planPool creates the pool of a listener, or updates it if it deviates from the desired one.
func planPool(in input, b binding, want Pool) (Ref, outcome) {
	out := in.outcome()
	have := b.pool
	m := b.marker(in.desired.Owner)
	m.Wrote = want.hash()
	m.Probe = nonDefaultProbe(want, b.listener.Protocol)
	m.Checked = want.Check != (PoolCheck{})
	want.Description = describe(have.Description, m)
	if !have.exists() {
		name := nameFor(KindPool, in.desired.Owner, b.key())
		out.step(phasePool, Step{
			Verb: Create,
			Kind: KindPool,
			Name: name,
			Pool: &want,
		})
		return Ref{Name: name}, out
	}
	switch described := want.Description == have.Description; {
	case described && want.mayDiffer(have.object) && !out.need(FullPools):
	case !described, want.differs(have.object), have.State == Failed:
		out.update(phasePool, have.Object, Step{
			Kind:           KindPool,
			Pool:           &want,
			FormerMonitors: formerProbes(want, b),
		})
	}
	return Ref{have.ID, have.Name}, out
}

// writtenMonitor returns the monitor that this program writes to a pool.
func writtenMonitor(p Pool) Monitor {
	if len(p.Monitors) > 0 {
		return p.Monitors[0]
	}
	return MonitorNone
}

// nonDefaultProbe returns the monitor that the marker of a pool must name. If a pool has several monitors, it does not
// show which one this program wrote.
func nonDefaultProbe(want Pool, p loadbalancer.Protocol) Monitor {
	if now := writtenMonitor(want); now != defaultMonitor(p) {
		return now
	}
	return ""
}

// formerProbes returns the monitors that this program wrote before and must remove.
func formerProbes(want Pool, b binding) []Monitor {
	former := defaultMonitor(b.listener.Protocol)
	if b.pool.marker.Probe != "" {
		former = b.pool.marker.Probe
	}
	if former == writtenMonitor(want) || former == MonitorNone {
		return nil
	}
	return []Monitor{former}
}
