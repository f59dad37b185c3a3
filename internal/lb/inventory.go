// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// An inventory is what is proved to be the owner's, and what is another's.
type inventory struct {
	services     []owned[VirtualService]
	pools        []owned[Pool]
	rules        []owned[Rule]
	profiles     []owned[Profile]
	firewall     []owned[FirewallRule]
	certificates []owned[CertificateItem]
	// claims are marked as the owner's; intended were made for it, and are not marked yet.
	claims   []Claim
	intended []Claim
	// others is what others have on the gateway, and what has an old name and is not proved to be the owner's;
	// doubtful are the names of the latter, sorted.
	others   []loadbalancer.Use
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

// takeInventory finds out what is the owner's.
func takeInventory(d Desired, o Observed) inventory {
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

// A classifier tells the owner's objects from others, and collects what may be either.
type classifier struct {
	desired  Desired
	proved   map[string]bool // old names of ports whose objects are the owner's
	others   []loadbalancer.Use
	doubtful []string
}

// classify returns an object if it is the owner's, else nothing. Its own key is that which the object itself shows, if
// any.
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

// keyOf is the key of the listener with a name.
func (c *classifier) keyOf(port string) string {
	if i := slices.IndexFunc(c.desired.Listeners, func(l Listener) bool { return l.Name == port }); i >= 0 {
		return c.desired.Listeners[i].key()
	}
	return port
}

// usesOf returns the addresses that an object is on.
func usesOf(object any, m Marker) []loadbalancer.Use {
	switch x := object.(type) {
	case VirtualService:
		return x.Uses(x.Name, m)
	case Rule:
		return x.Uses(m, "")
	}
	return nil
}

// isClaimOf reports whether a claim is described as the owner's.
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

// isIntended reports whether a claim was made for this load balancer, and not marked yet. What is used already was made
// for another purpose, unless the load balancer itself is on it.
func (i inventory) isIntended(d Desired, o Observed, c Claim) bool {
	return c.Description == "" && slices.Contains(d.Intent, c.Value) && (!c.Used || i.isOn(c.Value)) &&
		!slices.Contains(o.VMNotOwned, c.ID)
}

// claimed reports whether a claim is the owner's.
func (i inventory) claimed(c Claim) bool {
	return slices.ContainsFunc(i.claims, func(x Claim) bool { return x.ID == c.ID })
}

// intends reports whether a claim was made for the owner, and not marked yet.
func (i inventory) intends(c Claim) bool { return slices.Contains(i.intended, c) }

// isOn reports whether an object of the owner has an address.
func (i inventory) isOn(a netip.Addr) bool {
	isVIP := func(vs owned[VirtualService]) bool { return slices.Contains(vs.object.VIPs, a) }
	isExternal := func(r owned[Rule]) bool { return r.object.External == a }
	return slices.ContainsFunc(i.services, isVIP) || slices.ContainsFunc(i.rules, isExternal)
}

// occupantOf names what others have on a port of an address. That an address is reserved changes nothing for an owner
// that is on it.
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

// take returns the object of a listener, and the other objects: of several the marked one, then the one with the lowest
// id. What no listener takes is not wanted any more.
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

// before orders the objects of one listener by which of them stays.
func before[T any](a, b owned[T]) bool {
	if a.old != b.old {
		return !a.old
	}
	return a.ID < b.ID
}
