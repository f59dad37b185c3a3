// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"crypto/sha256"
	"net/netip"
	"slices"
	"strings"
)

// A poolPlanner plans pools and the IP set of their members.
type poolPlanner struct{ *planner }

// planSet plans the IP set of the cluster's nodes, where pools can have one: a change of nodes is then one write
// for all pools.
func (p poolPlanner) planSet() {
	if !p.c.MemberSets || p.d.OwnMembers {
		return
	}
	family := p.families[0]
	which := strings.ToLower(string(family))
	sets := p.sets(which)
	if len(sets) == 0 {
		want := p.wantedSet(which, p.d.members(family), "")
		p.group = Ref{Name: setName(p.d.Owner.Cluster, p.o.Gateway, which)}
		p.step(phasePrepare, Step{Verb: Create, Kind: KindSet, Name: p.group.Name, Set: &want})
		return
	}
	p.group = Ref{sets[0].ID, sets[0].Name}
	p.set = sets[0].Object
	p.updateSet(sets[0], family, which)
}

// sets are the cluster's IP sets for this gateway, all or of one family: first those whose markers name the gateway,
// then older ones whose markers name none.
func (p *planner) sets(which string) []Set {
	named := func(s Set) bool { m, _ := ParseMarker(s.Description); return m.Gateway != "" }
	out := slices.DeleteFunc(slices.Clone(p.o.Sets), func(s Set) bool {
		m, ok := ParseMarker(s.Description)
		return !ok || !m.Owner.Is(Owner{Cluster: p.d.Owner.Cluster}) || !m.For(p.o.Gateway.ID) ||
			which != "" && m.Listener != which
	})
	slices.SortStableFunc(out, func(a, b Set) int {
		switch {
		case named(a) == named(b):
			return 0
		case named(a):
			return -1
		}
		return 1
	})
	return out
}

func (p poolPlanner) updateSet(s Set, f Family, which string) {
	if want := p.wantedSet(which, p.d.members(f), s.Description); p.setDiffers(s, want, f) {
		p.update(phasePrepare, s.Object, Step{Kind: KindSet, Set: &want})
	}
}

func (p poolPlanner) wantedSet(which string, members []netip.Addr, description string) Set {
	m := Marker{
		Owner:    Owner{Cluster: p.d.Owner.Cluster},
		Listener: which,
		Gateway:  short(p.o.Gateway.ID),
		Wrote:    short(words(members)...),
	}
	return Set{Object: Object{Description: describe(description, m)}, Members: members, Generation: p.d.Generation}
}

// setDiffers reports whether an IP set is not as wanted. One that seems to have been changed by others is read first.
func (p poolPlanner) setDiffers(have, want Set, f Family) bool {
	switch {
	case have.Generation > want.Generation:
		return false // it was written from a newer node list
	case want.Description != have.Description, have.State == Failed:
		return true
	case have.Full:
		return !slices.Equal(membersOf(have.Members, f), want.Members)
	case have.State == Realized && p.otherCount(len(want.Members)):
		p.need(FullSets)
	}
	return false
}

// otherCount reports whether a pool of the owner has another number of members than its group should have, as far
// as lists show.
func (p poolPlanner) otherCount(n int) bool {
	return slices.ContainsFunc(p.all.pools, func(x owned[Pool]) bool {
		h := x.object.Hints
		return h != nil && h.ByGroup && h.Members >= 0 && h.Members != n && x.State == Realized
	})
}

// members are the members that are listed in pools; none where pools have a group.
func (p poolPlanner) members() []netip.Addr {
	if p.group != (Ref{}) {
		return nil
	}
	members := p.d.members(p.families[0])
	if p.c.MaxMembers != 0 && len(members) > p.c.MaxMembers {
		p.notice(TooManyMembers, "%d of %d nodes are members of the load balancer, as a pool takes no more: "+
			"give the user the right to manage security groups, then all are", p.c.MaxMembers, len(members))
	}
	return p.limited(members)
}

// limited are as many of some members as a pool takes: a subset that stays the same as other nodes come and go.
// They are sorted.
func (p poolPlanner) limited(members []netip.Addr) []netip.Addr {
	if p.c.MaxMembers == 0 || len(members) <= p.c.MaxMembers {
		return members
	}
	rank := map[netip.Addr][sha256.Size]byte{}
	for _, a := range members {
		rank[a] = sha256.Sum256([]byte(p.d.Owner.UID + a.String()))
	}
	slices.SortFunc(members, func(a, b netip.Addr) int {
		x := rank[a]
		y := rank[b]
		return slices.Compare(x[:], y[:])
	})
	return sorted(members[:p.c.MaxMembers])
}

// plan plans the pool of a listener and returns the reference to it.
func (p poolPlanner) plan(t *target, members []netip.Addr) Ref {
	l := t.listener
	have := t.pool
	want := Pool{
		NodePort:  l.NodePort,
		Group:     p.group,
		Members:   members,
		Monitors:  l.monitors(),
		Sticky:    p.d.Sticky,
		Algorithm: p.d.Algorithm,
	}
	m := p.marker(t)
	m.Wrote = want.hash()
	former := noteProbe(want, &m, l.Protocol, have)
	want.Description = describe(have.Description, m)
	if !have.exists() {
		name := nameFor(KindPool, p.d.Owner, l.Key())
		p.step(phasePool, Step{Verb: Create, Kind: KindPool, Name: name, Pool: &want})
		return Ref{Name: name}
	}
	switch described := want.Description == have.Description; {
	case described && want.mayDiffer(have.object) && !p.need(FullPools):
	case !described, want.differs(have.object), have.State == Failed:
		p.update(phasePool, have.Object, Step{Kind: KindPool, Pool: &want, FormerMonitors: former})
	}
	return Ref{have.ID, have.Name}
}

// noteProbe puts the monitor of a pool into its marker, and returns the one that was ours before, if it has to go:
// of several monitors the pool itself does not show which is ours.
func noteProbe(want Pool, m *Marker, p Protocol, have owned[Pool]) []Monitor {
	now := MonitorNone
	former := usualMonitor(p)
	if len(want.Monitors) > 0 {
		now = want.Monitors[0]
	}
	if now != usualMonitor(p) {
		m.Probe = now
	}
	if have.marker.Probe != "" {
		former = have.marker.Probe
	}
	if !have.exists() || former == now || former == MonitorNone {
		return nil
	}
	return []Monitor{former}
}

// Follow plans only what keeps the members of an existing load balancer in step with the nodes while what is
// desired is refused. Of the desired, only owner, members and proofs of ownership count; nothing is created and nothing
// removed. It is pure and total. The plan has needs or steps, and no status.
func Follow(d Desired, o Observed, c Capabilities) Plan {
	p := poolPlanner{newPlanner(d, o, c)}
	switch {
	case d.Absent:
		return Plan{}
	case p.own.unread && !p.need(FullPools), len(p.own.doubtful) > 0 && !p.need(Forwardings): // a rule may prove it
		return Plan{Needs: p.needs}
	case len(p.all.pools) == 0:
		return Plan{}
	}
	if !p.d.OwnMembers {
		p.followSets()
	}
	for _, x := range p.all.pools {
		p.followPool(x)
	}
	if p.needs != 0 {
		return Plan{Needs: p.needs}
	}
	return Plan{Steps: slices.Concat(p.steps[:]...)}
}

// followSets updates the IP sets that exist with the nodes of their families.
func (p poolPlanner) followSets() {
	for _, f := range []Family{IPv4, IPv6} {
		which := strings.ToLower(string(f))
		if sets := p.sets(which); len(sets) > 0 && len(p.d.members(f)) > 0 {
			p.updateSet(sets[0], f, which)
		}
	}
}

// followPool updates a pool that lists its members with the nodes of their family. One of cloud provider interface
// 1.6.1 gets a marker with that, and keeps its monitors.
func (p poolPlanner) followPool(x owned[Pool]) {
	have := x.object
	if !p.listsMembers(have) {
		return
	}
	f, known := p.familyOf(have)
	if !known {
		return
	}
	members := p.limited(p.d.members(f))
	m := x.marker
	want := Pool{NodePort: have.NodePort, Members: members, Monitors: ourMonitors(m), Sticky: have.Sticky}
	if x.old {
		m = Marker{Owner: p.d.Owner, Listener: x.key}
		want.Monitors = nil
	}
	if len(members) == 0 && !p.d.OwnMembers || want.sameMembers(have) {
		return // a pool without members would help no client
	}
	m.Wrote = want.hash()
	want.Description = describe(x.Description, m)
	p.step(phasePool, Step{Verb: Update, Kind: KindPool, Name: x.Name, ID: x.ID, Pool: &want})
}

// listsMembers reports whether a pool names its members one by one, as far as it is known.
func (p poolPlanner) listsMembers(have Pool) bool {
	return (have.Hints == nil || !have.Hints.ByGroup) && (have.Full || p.need(FullPools)) && have.Group == (Ref{})
}

// familyOf returns the family of a pool's members, those that there are or, where there may be none, those that there
// should be.
func (p poolPlanner) familyOf(have Pool) (Family, bool) {
	switch {
	case len(have.Members) > 0:
		return FamilyOf(have.Members[0]), true
	case p.d.OwnMembers && len(p.d.Families) > 0:
		return p.d.Families[0], true
	}
	return "", false
}

// ourMonitors are the monitors that a pool was given, as its marker shows.
func ourMonitors(m Marker) []Monitor {
	switch {
	case m.Probe == MonitorNone:
		return nil
	case m.Probe != "":
		return []Monitor{m.Probe}
	case strings.HasPrefix(m.Listener, "udp-"):
		return []Monitor{usualMonitor(UDP)}
	}
	return []Monitor{usualMonitor(TCP)}
}
