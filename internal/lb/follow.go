package lb

import (
	"slices"
	"strings"
)

// Follow plans what lets a load balancer that stands follow the nodes while what is wanted now is refused: members that pools list, and those
// of IP sets of the cluster. Of the wish, only the owner and the members count; all else stays as it stands, nothing is made and nothing is removed. It
// is pure and total. The plan has needs or steps, and no status.
func Follow(d Desired, o Observed, c Capabilities) Plan {
	p := follower{newPlanner(d, o, c)}
	if d.Absent || len(p.all.pools) == 0 {
		return Plan{}
	}
	p.followSets()
	for _, x := range p.all.pools {
		p.followPool(x)
	}
	if p.needs != 0 {
		return Plan{Needs: p.needs}
	}
	return Plan{Steps: slices.Concat(p.steps[:]...)}
}

// A follower updates members, and nothing else.
type follower struct{ *planner }

// followSets lets the IP sets that are there have the nodes of their families.
func (p follower) followSets() {
	owner, pools := Owner{Cluster: p.d.Owner.Cluster}, poolPlanner{p.planner}
	for _, s := range p.o.Sets {
		got, ok := ParseMarker(s.Description)
		for _, f := range []Family{IPv4, IPv6} {
			members := membersOf(p.d.Members, f)
			if !ok || !got.Owner.Is(owner) || got.Listener != strings.ToLower(string(f)) || len(members) == 0 {
				continue
			}
			m := Marker{Owner: owner, Listener: got.Listener, Wrote: short(words(members)...)}
			spec := Set{Object: Object{Description: describe(s.Description, m)}, Members: members, Generation: p.d.Generation}
			if pools.setDiffers(s, spec, f) {
				p.step(phasePrepare, Step{Verb: Update, Kind: KindSet, Name: s.Name, ID: s.ID, Set: &spec})
			}
		}
	}
}

// followPool lets a pool that lists its members have the nodes of their family.
func (p follower) followPool(x owned[Pool]) {
	pool := x.object
	if x.old || pool.Hints != nil && pool.Hints.ByGroup || !pool.Full && !p.need(FullPools) || pool.Group != (Ref{}) || len(pool.Members) == 0 {
		return
	}
	members := poolPlanner{p.planner}.someOf(membersOf(p.d.Members, FamilyOf(pool.Members[0])))
	if len(members) == 0 {
		return // that is no change of nodes that anybody wants to follow
	}
	spec := Pool{NodePort: pool.NodePort, Members: members, Probes: ourProbes(x.marker), Sticky: pool.Sticky}
	if spec.sameMembers(pool) {
		return
	}
	m := x.marker
	m.Wrote = spec.hash()
	spec.Description = describe(x.base.Description, m)
	p.step(phasePool, Step{Verb: Update, Kind: KindPool, Name: x.base.Name, ID: x.base.ID, Pool: &spec})
}

// ourProbes are the monitors that a pool was given, as its marker says.
func ourProbes(m Marker) []Health {
	switch {
	case m.Probe == MonitorNone:
		return nil
	case m.Probe != "":
		return []Health{{Monitor: m.Probe}}
	case strings.HasPrefix(m.Listener, "udp-"):
		return []Health{{Monitor: usualProbe(UDP)}}
	}
	return []Health{{Monitor: usualProbe(TCP)}}
}
