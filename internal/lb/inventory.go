// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"net/netip"
	"slices"
)

// An inventory is what is proved to be the owner's.
type inventory struct {
	services     []owned[VirtualService]
	pools        []owned[Pool]
	rules        []owned[Rule]
	profiles     []owned[Profile]
	firewall     []owned[FirewallRule]
	certificates []owned[CertificateItem]
	claims       []Claim
	// others is what others have on the gateway, and what has an old name and is not proved to be the owner's;
	// doubtful are the names of the latter.
	others   []Use
	doubtful []string
	// unread is set if pools must be read in full before all is known.
	unread bool
}

// An owned object has the key of the listener that it serves.
type owned[T any] struct {
	Object

	object T
	marker Marker
	key    string
	old    bool // it has no marker yet
}

func (x owned[T]) exists() bool { return x.ID != "" }

func (i inventory) clone() inventory {
	i.services = slices.Clone(i.services)
	i.pools = slices.Clone(i.pools)
	i.rules = slices.Clone(i.rules)
	i.profiles = slices.Clone(i.profiles)
	i.firewall = slices.Clone(i.firewall)
	i.certificates = slices.Clone(i.certificates)
	return i
}

// claimed reports whether a claim is the owner's.
func (i inventory) claimed(c Claim) bool {
	return slices.ContainsFunc(i.claims, func(x Claim) bool { return x.ID == c.ID })
}

// takeInventory finds out what is the owner's.
func takeInventory(d Desired, o Observed) inventory {
	inv := inventory{others: slices.Concat(o.Taken, d.Reserved)}
	c := classifier{d: d, inv: &inv, proved: map[string]bool{}}
	c.proveOldPorts(o)
	for _, x := range o.Services {
		classify(&c, &inv.services, KindService, x, x.Object, key(x.Protocol, x.Port))
	}
	for _, x := range o.Pools {
		classify(&c, &inv.pools, KindPool, x, x.Object, "")
	}
	for _, x := range o.Rules {
		classify(&c, &inv.rules, KindRule, x, x.Object, key(TCP, x.ExternalPort))
	}
	for _, x := range o.Profiles {
		classify(&c, &inv.profiles, KindProfile, x, x.Object, key(x.Protocol, x.Port))
	}
	for _, x := range o.Firewall {
		classify(&c, &inv.firewall, KindFirewall, x, x.Object, "")
	}
	for _, x := range o.Certificates {
		classify(&c, &inv.certificates, KindCertificate, x, x.Object, "")
	}
	inv.claims = slices.DeleteFunc(slices.Clone(o.Claims), func(x Claim) bool { return !c.claimed(x) })
	keyOldPools(inv.pools, inv.services)
	return inv
}

// keyOldPools gives old pools the key of the virtual service that sends to them.
func keyOldPools(pools []owned[Pool], services []owned[VirtualService]) {
	for i, p := range pools {
		for _, vs := range services {
			if p.old && vs.object.Pool.ID == p.ID {
				pools[i].key = vs.key
			}
		}
	}
}

type classifier struct {
	d      Desired
	inv    *inventory
	proved map[string]bool // old names of ports whose objects are the owner's
}

// classify adds an object to a list if it is the owner's. Its own key is that which the object itself shows, if any.
func classify[T any](c *classifier, list *[]owned[T], kind Kind, object T, base Object, ownKey string) {
	m, origin := OwnerOf(c.d.Owner.Cluster, kind, base.Name, base.Description)
	x := owned[T]{Object: base, object: object, marker: m, key: m.Listener, old: origin == OldName}
	switch {
	case origin == Marked && m.Owner.Is(c.d.Owner):
	case origin == OldName && m.Owner.Name == c.d.Owner.Name && c.proved[m.Listener]:
		x.key = cmp.Or(ownKey, c.keyOf(m.Listener))
	case origin == OldName && m.Owner.Name == c.d.Owner.Name:
		c.inv.doubtful = append(c.inv.doubtful, base.Name)
		c.inv.others = append(c.inv.others, usesOf(object, Marker{})...)
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

// keyOf is the key of the listener with a name.
func (c *classifier) keyOf(port string) string {
	if i := slices.IndexFunc(c.d.Listeners, func(l Listener) bool { return l.Name == port }); i >= 0 {
		return c.d.Listeners[i].Key()
	}
	return port
}

// proveOldPorts finds the old names of ports whose objects are provably the owner's: of its cluster and of its Service.
// A published address of this Service alone proves both, as does the marker that one of them has already. Else names
// prove the cluster if its id is unique, or the members of the pool do if all are its nodes; and names prove the
// Service unless another one of the cluster has this name: then the pool's node port does, as it belongs to one Service
// at a time.
func (c *classifier) proveOldPorts(o Observed) {
	published := func(a netip.Addr) bool { return slices.Contains(c.d.Published, a) }
	for _, x := range o.Services {
		both := func() bool { return slices.ContainsFunc(x.VIPs, published) }
		c.prove(KindService, x.Object, proof{both, both})
	}
	for _, x := range o.Pools {
		c.prove(KindPool, x.Object,
			proof{func() bool { return c.sameNodes(x) }, func() bool { return c.sameNodePort(x) }})
	}
	for _, x := range o.Rules {
		both := func() bool { return published(x.External) }
		c.prove(KindRule, x.Object, proof{both, both})
	}
	for _, x := range o.Profiles {
		none := func() bool { return false }
		c.prove(KindProfile, x.Object, proof{none, none})
	}
}

// A proof asks an object itself whether it is the cluster's, and the Service's.
type proof struct{ ofCluster, ofService func() bool }

// prove notes the old name of the port of an object that is the owner's; the proof is asked where its name is none.
func (c *classifier) prove(kind Kind, x Object, itself proof) {
	m, origin := OwnerOf(c.d.Owner.Cluster, kind, x.Name, x.Description)
	switch {
	case origin == Marked && m.Owner.Is(c.d.Owner):
		if _, port, ok := oldName(c.d.Owner.Cluster, kind, x.Name); ok {
			c.proved[port] = true
		}
	case origin == OldName && m.Owner.Name == c.d.Owner.Name && (NamesProve(c.d.Owner.Cluster) || itself.ofCluster()) &&
		(!c.d.Duplicate || itself.ofService()):
		c.proved[m.Listener] = true
	}
}

// sameNodes reports whether all members of a pool are nodes of the cluster, if that was read.
func (c *classifier) sameNodes(p Pool) bool {
	if !p.Full {
		c.inv.unread = true
		return false
	}
	return len(p.Members) > 0 &&
		!slices.ContainsFunc(p.Members, func(a netip.Addr) bool { return !slices.Contains(c.d.Members, a.Unmap()) })
}

// sameNodePort reports whether a pool sends to a node port of the owner, if that was read.
func (c *classifier) sameNodePort(p Pool) bool {
	if !p.Full {
		c.inv.unread = true
		return false
	}
	return slices.ContainsFunc(c.d.Listeners,
		func(l Listener) bool { return l.NodePort == p.NodePort && l.NodePort != 0 })
}

// claimed reports whether a claim is the owner's.
func (c *classifier) claimed(x Claim) bool {
	m, origin := OwnerOf(c.d.Owner.Cluster, KindAddress, x.Value.String(), x.Description)
	switch origin {
	case Marked:
		return m.Owner.Is(c.d.Owner)
	case OldName:
		return m.Owner.Name == c.d.Owner.Name && (m.Owner.Namespace == c.d.Owner.Namespace || c.d.Owner.Old()) &&
			(NamesProve(c.d.Owner.Cluster) || slices.Contains(c.d.Published, x.Value))
	default:
		return false
	}
}

// take removes the object of a listener from a list: of several, the marked one, then the one with the lowest id.
// What is left in the lists in the end is not wanted any more.
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
	return a.ID < b.ID
}
