package lb

import (
	"cmp"
	"net/netip"
	"slices"
)

// holdings are what is proved to be the owner's, each object with the key of the listener it is for.
type inventory struct {
	services     []owned[VirtualService]
	pools        []owned[Pool]
	rules        []owned[Rule]
	profiles     []owned[Profile]
	firewall     []owned[FirewallRule]
	certificates []owned[CertificateItem]
	claims       []Claim
	// others is what others have on the gateway; also what has an old name and is not proved to be the owner's.
	others []Use
	// doubtful are the names of those objects.
	doubtful []string
	// unread says that pools must be read in full before all is known.
	unread bool
}

type owned[T any] struct {
	object T
	base   Object
	marker Marker
	key    string
	// old says that the object has no marker yet.
	old bool
}

// sortOut finds out what is the owner's.
func takeInventory(d Desired, o Observed) inventory {
	h := inventory{others: slices.Concat(o.Taken, d.Reserved)}
	s := classifier{d: d, o: o, h: &h, proved: map[string]bool{}}
	s.proveLegacyPorts()
	for _, x := range o.Services {
		keep(&s, &h.services, KindService, x, x.Object, func() string { return key(x.Protocol, x.Port) })
	}
	for _, x := range o.Pools {
		keep(&s, &h.pools, KindPool, x, x.Object, nil)
	}
	for _, x := range o.Rules {
		keep(&s, &h.rules, KindRule, x, x.Object, func() string { return key(TCP, x.ExternalPort) })
	}
	for _, x := range o.Profiles {
		keep(&s, &h.profiles, KindProfile, x, x.Object, func() string { return key(x.Protocol, x.Port) })
	}
	for _, x := range o.Firewall {
		keep(&s, &h.firewall, KindFirewall, x, x.Object, nil)
	}
	for _, x := range o.Certificates {
		keep(&s, &h.certificates, KindCertificate, x, x.Object, nil)
	}
	for _, c := range o.Claims {
		if s.claim(c) {
			h.claims = append(h.claims, c)
		}
	}
	s.keysOfOldPools()
	return h
}

type classifier struct {
	d Desired
	o Observed
	h *inventory
	// proved has the old names of ports whose objects are the owner's.
	proved map[string]bool
}

// keep puts an object where it belongs.
func keep[T any](s *classifier, list *[]owned[T], kind Kind, object T, base Object, oldKey func() string) {
	m, origin := OwnerOf(s.d.Owner.Cluster, kind, base.Name, base.Description)
	x := owned[T]{object: object, base: base, marker: m, key: m.Listener, old: origin == OldName}
	switch {
	case origin == Marked && m.Owner.Is(s.d.Owner):
	case origin == OldName && m.Owner.Name == s.d.Owner.Name && s.proved[m.Listener]:
		x.key = s.oldKey(m.Listener, oldKey)
	case origin == OldName && m.Owner.Name == s.d.Owner.Name:
		s.h.doubtful = append(s.h.doubtful, base.Name)
		s.h.others = append(s.h.others, usesOf(object, Marker{})...)
		return
	default:
		return
	}
	*list = append(*list, x)
}

// usesOf returns the addresses that an object is on.
func usesOf(object any, m Marker) []Use {
	switch x := object.(type) {
	case VirtualService:
		return x.Uses(x.Name, m)
	case Rule:
		return x.Uses(m, "")
	}
	return nil
}

// oldKey is the key of an object without a marker: what the object says itself, else that of the listener which has the name of its port.
func (s *classifier) oldKey(port string, itself func() string) string {
	if itself != nil {
		return itself()
	}
	if i := slices.IndexFunc(s.d.Listeners, func(l Listener) bool { return l.Name == port }); i >= 0 {
		return s.d.Listeners[i].Key()
	}
	return port
}

// A trace is what an object tells of whose old objects are.
type evidence struct {
	kind      Kind
	base      Object
	addresses []netip.Addr
	pool      *Pool
}

func (s *classifier) evidences() []evidence {
	var out []evidence
	for _, x := range s.o.Services {
		out = append(out, evidence{kind: KindService, base: x.Object, addresses: x.VIPs})
	}
	for _, x := range s.o.Pools {
		out = append(out, evidence{kind: KindPool, base: x.Object, pool: &x})
	}
	for _, x := range s.o.Rules {
		out = append(out, evidence{kind: KindRule, base: x.Object, addresses: []netip.Addr{x.External}})
	}
	for _, x := range s.o.Profiles {
		out = append(out, evidence{kind: KindProfile, base: x.Object})
	}
	return out
}

// proveOldPorts finds the old names of ports whose objects are provably the owner's: names say which cluster and which name the Service has,
// so they are the Service's if no other has this name. If one has, they are if the pool's node port is one of the Service's, as a node
// port belongs to one Service of the cluster at a time, or if they are on the address that is published for this Service alone, or if one of
// them has the marker already.
func (s *classifier) proveLegacyPorts() {
	for _, t := range s.evidences() {
		m, origin := OwnerOf(s.d.Owner.Cluster, t.kind, t.base.Name, t.base.Description)
		switch {
		case origin == Marked && m.Owner.Is(s.d.Owner):
			if _, port, ok := oldName(s.d.Owner.Cluster, t.kind, t.base.Name); ok {
				s.proved[port] = true
			}
		case origin == OldName && m.Owner.Name == s.d.Owner.Name && s.proves(t):
			s.proved[m.Listener] = true
		}
	}
}

func (s *classifier) proves(t evidence) bool {
	switch {
	case !s.d.Duplicate:
		return true
	case slices.ContainsFunc(t.addresses, func(a netip.Addr) bool { return slices.Contains(s.d.Published, a) }):
		return true
	case t.pool == nil:
		return false
	case !t.pool.Full:
		s.h.unread = true
		return false
	}
	return slices.ContainsFunc(s.d.Listeners, func(l Listener) bool { return l.NodePort == t.pool.NodePort && l.NodePort != 0 })
}

// claim says whether an allocation is the owner's.
func (s *classifier) claim(c Claim) bool {
	m, origin := OwnerOf(s.d.Owner.Cluster, KindAddress, c.Value.String(), c.Description)
	switch origin {
	case Marked:
		return m.Owner.Is(s.d.Owner)
	case OldName:
		return m.Owner.Name == s.d.Owner.Name && (m.Owner.Namespace == s.d.Owner.Namespace || s.d.Owner.Old())
	default:
		return false
	}
}

// keysOfOldPools gives old pools the key of the virtual service that sends to them.
func (s *classifier) keysOfOldPools() {
	for i, p := range s.h.pools {
		for _, vs := range s.h.services {
			if p.old && vs.object.Pool.ID == p.base.ID {
				s.h.pools[i].key = vs.key
			}
		}
	}
}

// take removes the object that stands for a listener from a list: of several the marked one, then the one VCD has had longer by its
// id. What is left in the lists in the end is not wanted any more.
func take[T any](list *[]owned[T], key string) (owned[T], bool) {
	best := -1
	for i, x := range *list {
		if x.key == key && (best < 0 || before(x, (*list)[best])) {
			best = i
		}
	}
	if best < 0 {
		return owned[T]{}, false
	}
	x := (*list)[best]
	*list = slices.Delete(*list, best, best+1)
	return x, true
}

func before[T any](a, b owned[T]) bool {
	if a.old != b.old {
		return !a.old
	}
	return cmp.Compare(a.base.ID, b.base.ID) < 0
}
