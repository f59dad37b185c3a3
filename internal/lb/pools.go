package lb

import (
	"crypto/sha256"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A poolPlanner plans pools and the IP set of their members.
type poolPlanner struct{ *planner }

// memberSet sees to the IP set of the cluster's nodes, where pools can have one: then a node more or less is one write for all pools.
func (p poolPlanner) memberSet() {
	if !p.c.MemberSets {
		return
	}
	members, family := p.members(), p.families[0]
	owner := Owner{Cluster: p.d.Owner.Cluster}
	which := strings.ToLower(string(family))
	m := Marker{Owner: owner, Listener: which, Wrote: short(words(members)...)}
	spec := Set{Object: Object{Description: m.String()}, Members: members, Generation: p.d.Generation}
	i := slices.IndexFunc(p.o.Sets, func(s Set) bool {
		got, ok := ParseMarker(s.Description)
		return ok && got.Owner.Is(owner) && got.Listener == which
	})
	if i < 0 {
		p.group = Ref{Name: nameFor(KindSet, owner, which)}
		p.step(phasePrepare, Step{Verb: Create, Kind: KindSet, Name: p.group.Name, Set: &spec})
		return
	}
	s := p.o.Sets[i]
	p.group, p.set = Ref{s.ID, s.Name}, s.Object
	spec.Description = describe(s.Description, m)
	if p.setDiffers(s, spec, family) {
		p.update(phasePrepare, s.Object, Step{Kind: KindSet, Set: &spec})
	}
}

// setDiffers says whether an IP set is not as wanted. One that seems to have been changed by somebody is to be read first.
func (p poolPlanner) setDiffers(s Set, spec Set, f Family) bool {
	switch {
	case s.Generation > spec.Generation:
		return false // somebody with a newer list of nodes has written it
	case spec.Description != s.Description, s.State == Failed:
		return true
	case s.Full:
		return !slices.Equal(membersOf(s.Members, f), spec.Members)
	case s.State == Realized && p.otherCount(len(spec.Members)):
		p.need(FullSets)
	}
	return false
}

// otherCount says whether a pool of the owner has another number of members than its group should have, as far as lists tell.
func (p poolPlanner) otherCount(n int) bool {
	return slices.ContainsFunc(p.all.pools, func(x owned[Pool]) bool {
		h := x.object.Hints
		return h != nil && h.ByGroup && h.Members >= 0 && h.Members != n && x.base.State == Realized
	})
}

func words(addresses []netip.Addr) []string {
	out := make([]string, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return out
}

// poolMembers are the members that are listed in pools. Beyond what a pool takes they are a subset that stays the same as nodes come
// and go, but for those that went.
func (p poolPlanner) poolMembers() []netip.Addr {
	if p.group != (Ref{}) {
		return nil
	}
	members := p.members()
	if p.c.MaxMembers == 0 || len(members) <= p.c.MaxMembers {
		return members
	}
	p.notice(TooManyMembers, "%d of %d nodes are members of the load balancer, as a pool takes no more: give the user the right to manage security groups, "+
		"then all are", p.c.MaxMembers, len(members))
	return p.someOf(members)
}

// someOf are as many of some members as a pool takes: the same for one load balancer as long as they are there. They are sorted.
func (p poolPlanner) someOf(members []netip.Addr) []netip.Addr {
	if p.c.MaxMembers == 0 || len(members) <= p.c.MaxMembers {
		return members
	}
	rank := map[netip.Addr][sha256.Size]byte{}
	for _, a := range members {
		rank[a] = sha256.Sum256([]byte(p.d.Owner.UID + a.String()))
	}
	slices.SortFunc(members, func(a, b netip.Addr) int {
		x, y := rank[a], rank[b]
		return slices.Compare(x[:], y[:])
	})
	members = members[:p.c.MaxMembers]
	slices.SortFunc(members, netip.Addr.Compare)
	return members
}

// poolSpec is what the pool of a listener should be; without the description.
func (p poolPlanner) poolSpec(l Listener, members []netip.Addr) Pool {
	return Pool{
		NodePort: l.NodePort, Group: p.group, Members: members, Probes: p.probes(l), Sticky: p.d.Sticky, Algorithm: p.d.Algorithm,
	}
}

// probes are the monitors of a pool: what is asked for, else what shows that the node port answers. Where VCD cannot probe the port that
// says whether a node has endpoints of the Service, the node port says so for TCP: kube-proxy drops what comes to nodes without.
func (p poolPlanner) probes(l Listener) []Health {
	h := l.Health
	if !p.c.HealthPort {
		if h.Port != 0 {
			h.Monitor = ""
		}
		h.Port, h.Path, h.Interval = 0, "", 0
		if l.Protocol == UDP && l.Health.Port != 0 {
			p.notice(Unsupported, "this VCD cannot ask nodes whether they have endpoints of the Service: UDP packets may go to nodes without; "+
				"use externalTrafficPolicy Cluster")
		}
	}
	switch {
	case h.Monitor == MonitorNone:
		return nil
	case h.Monitor != "":
	case h.Port != 0:
		h.Monitor = MonitorHTTP
	default:
		h.Monitor = usualProbe(l.Protocol)
	}
	return []Health{h}
}

// hash is that of all that an update writes and lists do not show.
func (s Pool) hash() string {
	w := []string{strconv.Itoa(s.NodePort), s.Group.Name, strconv.FormatBool(s.Sticky), s.Algorithm}
	for _, h := range s.Probes {
		w = append(w, string(h.Monitor), strconv.Itoa(h.Port), h.Path, h.Interval.String())
	}
	return short(append(w, words(s.Members)...)...)
}

func (s Pool) sameMembers(x Pool) bool {
	if s.Group != (Ref{}) {
		return x.Group.Name == s.Group.Name && (s.Group.ID == "" || x.Group.ID == s.Group.ID)
	}
	members := slices.Clone(x.Members)
	slices.SortFunc(members, netip.Addr.Compare)
	return x.Group == Ref{} && slices.Equal(members, s.Members)
}

// doubts says whether a pool that was not read in full cannot be as the specification wants it, as far as lists tell. How many members a
// group has is the group's affair.
func (s Pool) noteDoubtful(x Pool) bool {
	h := x.Hints
	if x.Full || h == nil || x.State != Realized {
		return false
	}
	return h.ByGroup != (s.Group != Ref{}) || !h.Monitored && len(s.Probes) > 0 || !h.ByGroup && h.Members >= 0 && h.Members != len(s.Members)
}

// differs says whether a pool that was read is not as the specification wants it.
func (s Pool) differs(x Pool) bool {
	if !x.Full {
		return false
	}
	if s.NodePort != x.NodePort || s.Sticky != x.Sticky || s.Algorithm != "" && s.Algorithm != x.Algorithm || !s.sameMembers(x) {
		return true
	}
	return slices.ContainsFunc(s.Probes, func(want Health) bool {
		return !slices.ContainsFunc(x.Probes, func(h Health) bool { return h.Monitor == want.Monitor && h.Port == want.Port && h.Path == want.Path })
	})
}

// usualProbe is the monitor of a pool for which nothing else is asked.
func usualProbe(p Protocol) Monitor {
	if p == UDP {
		return MonitorUDP
	}
	return MonitorTCP
}

// noteProbe puts the monitor of a pool into its marker, and returns the one that was ours before, if it is to go: of several monitors the
// pool itself does not show which is ours.
func noteProbe(want Pool, m *Marker, p Protocol, have owned[Pool]) []Monitor {
	now, former := MonitorNone, usualProbe(p)
	if len(want.Probes) > 0 {
		now = want.Probes[0].Monitor
	}
	if now != usualProbe(p) {
		m.Probe = now
	}
	if have.marker.Probe != "" {
		former = have.marker.Probe
	}
	if have.base.ID == "" || former == now || former == MonitorNone {
		return nil
	}
	return []Monitor{former}
}
