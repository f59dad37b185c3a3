// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// An inventory separates the objects that are proved to belong to the owner from those of others.
type inventory struct {
	services     []owned[VirtualService]
	pools        []owned[Pool]
	rules        []owned[Rule]
	profiles     []owned[Profile]
	firewall     []owned[FirewallRule]
	certificates []owned[CertificateItem]
	// claims carry the owner's marker. intended are claims that were allocated for it and are not marked yet.
	claims   []Claim
	intended []Claim
	// others are the uses of others on the gateway. They include objects with an old name that are not proved to belong
	// to the owner; doubtful are the sorted names of these.
	others   []loadbalancer.Use
	doubtful []string
	// unread is set if pools must be read in full before the owners of all objects are known.
	unread bool
}

// An owned object is an object of the owner, with the key of the listener that it serves.
type owned[T any] struct {
	Object

	object T
	marker Marker
	key    string
	old    bool // it has no marker yet
}

func (x owned[T]) exists() bool { return x.ID != "" }

// newInventory determines which objects belong to the owner.
func newInventory(d Desired, o Observed) inventory {
	ports := proveOldPorts(d, o)
	c := classifier{
		desired: d,
		proved:  ports.names,
	}
	inv := inventory{unread: ports.unread}
	for _, x := range o.Services {
		inv.services = append(inv.services, classify(&c, KindService, x, x.Object, key(x.Protocol, x.Port))...)
	}
	for _, x := range o.Pools {
		inv.pools = append(inv.pools, classify(&c, KindPool, x, x.Object, "")...)
	}
	for _, x := range o.Rules {
		inv.rules = append(inv.rules, classify(&c, KindRule, x, x.Object, key(loadbalancer.TCP, x.ExternalPort))...)
	}
	for _, x := range o.Profiles {
		inv.profiles = append(inv.profiles, classify(&c, KindProfile, x, x.Object, key(x.Protocol, x.Port))...)
	}
	for _, x := range o.Firewall {
		inv.firewall = append(inv.firewall, classify(&c, KindFirewall, x, x.Object, "")...)
	}
	for _, x := range o.Certificates {
		inv.certificates = append(inv.certificates, classify(&c, KindCertificate, x, x.Object, "")...)
	}
	keyOldPools(inv.pools, inv.services)
	slices.Sort(c.doubtful)
	inv.doubtful = c.doubtful
	inv.others = slices.Concat(o.Taken, d.Reserved, c.others)
	for _, x := range o.Claims {
		switch {
		case isClaimOf(d, x):
			inv.claims = append(inv.claims, x)
		case inv.isIntended(d, o, x):
			inv.intended = append(inv.intended, x)
		}
	}
	return inv
}

// keyOldPools sets the keys of old pools to those of the virtual services that send to them.
func keyOldPools(pools []owned[Pool], services []owned[VirtualService]) {
	for i, p := range pools {
		for _, vs := range services {
			if p.old && vs.object.Pool.ID == p.ID {
				pools[i].key = vs.key
			}
		}
	}
}

// A classifier separates the owner's objects from others, and collects those that may be either.
type classifier struct {
	desired  Desired
	proved   map[string]bool // old names of ports whose objects belong to the owner
	others   []loadbalancer.Use
	doubtful []string
}

// classify returns an object if it belongs to the owner, otherwise nothing. ownKey is the key that follows from the
// object itself, or empty.
func classify[T any](c *classifier, kind loadbalancer.Kind, object T, base Object, ownKey string) []owned[T] {
	owner := c.desired.Owner
	m, origin := OwnerOf(owner.Cluster, kind, base.Name, base.Description)
	x := owned[T]{
		Object: base,
		object: object,
		marker: m,
		key:    m.Listener,
		old:    origin == OldName,
	}
	switch {
	case origin == Marked && m.Owner.Is(owner):
		return []owned[T]{x}
	case origin == OldName && Likely(owner, m.Owner) && c.proved[m.Listener]:
		x.key = cmp.Or(ownKey, c.keyOf(m.Listener))
		return []owned[T]{x}
	case origin == OldName && Likely(owner, m.Owner):
		c.doubtful = append(c.doubtful, base.Name)
		c.others = append(c.others, usesOf(object, Marker{})...)
	}
	return nil
}

// keyOf returns the key of the listener with a name.
func (c *classifier) keyOf(port string) string {
	if i := slices.IndexFunc(c.desired.Listeners, func(l Listener) bool { return l.Name == port }); i >= 0 {
		return c.desired.Listeners[i].key()
	}
	return port
}

// usesOf returns the addresses that an object uses.
func usesOf(object any, m Marker) []loadbalancer.Use {
	switch x := object.(type) {
	case VirtualService:
		return x.Uses(x.Name, m)
	case Rule:
		return x.Uses(m, "")
	}
	return nil
}

// isClaimOf reports whether the description of a claim names the owner.
func isClaimOf(d Desired, c Claim) bool {
	m, origin := OwnerOf(d.Owner.Cluster, KindAddress, c.Value.String(), c.Description)
	switch origin {
	case Marked:
		return m.Owner.Is(d.Owner)
	case OldName:
		return Likely(d.Owner, m.Owner) && (m.Owner.Namespace == d.Owner.Namespace || d.Owner.Inherited()) &&
			(NamesProve(d.Owner.Cluster) || slices.Contains(d.Published, c.Value))
	default:
		return false
	}
}

// isIntended reports whether a claim was allocated for this load balancer and is not marked yet. A claim in use was
// allocated for another purpose, unless the load balancer itself uses it.
func (i inventory) isIntended(d Desired, o Observed, c Claim) bool {
	return c.Description == "" && slices.Contains(d.Intent, c.Value) && (!c.Used || i.isOn(c.Value)) &&
		!slices.Contains(o.ForeignClaims, c.ID)
}

// claimed reports whether a claim carries the owner's marker.
func (i inventory) claimed(c Claim) bool {
	return slices.ContainsFunc(i.claims, func(x Claim) bool { return x.ID == c.ID })
}

// intends reports whether a claim was allocated for the owner and is not marked yet.
func (i inventory) intends(c Claim) bool { return slices.Contains(i.intended, c) }

// isOn reports whether an object of the owner has an address.
func (i inventory) isOn(a netip.Addr) bool {
	isVIP := func(vs owned[VirtualService]) bool { return slices.Contains(vs.object.VIPs, a) }
	isExternal := func(r owned[Rule]) bool { return r.object.External == a }
	return slices.ContainsFunc(i.services, isVIP) || slices.ContainsFunc(i.rules, isExternal)
}

// occupantOf returns the name of an object of others on a port of an address, or an empty string. A reservation of an
// address does not affect an owner that already uses it.
func (i inventory) occupantOf(a netip.Addr, l Listener) string {
	settled := i.isOn(a)
	for _, u := range i.others {
		if u.Address == a && (!u.Reserved || !settled) && (u.Port == 0 || u.Port == l.Port) &&
			(u.Protocol == "" || u.Protocol == l.Protocol) {
			return u.Name
		}
	}
	return ""
}

// take returns the object of a listener, and the remaining objects. If there are several, it prefers a marked one, then
// the lowest ID. Objects that no listener takes are no longer needed.
func take[T any](list []owned[T], key string) (owned[T], []owned[T]) {
	best := -1
	for i, x := range list {
		if x.key == key && (best < 0 || before(x, list[best])) {
			best = i
		}
	}
	if best < 0 {
		return owned[T]{}, list
	}
	return list[best], slices.Concat(list[:best], list[best+1:])
}

// before orders the objects of a listener by precedence.
func before[T any](a, b owned[T]) bool {
	if a.old != b.old {
		return !a.old
	}
	return a.ID < b.ID
}
