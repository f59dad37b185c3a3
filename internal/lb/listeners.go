// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A binding is a listener with the addresses of its virtual service and with its objects. Objects that do not exist are
// zero.
type binding struct {
	listener Listener
	vips     []netip.Addr
	service  owned[VirtualService]
	pool     owned[Pool]
	rule     owned[Rule]
	profile  owned[Profile]
}

// key returns the key of the listener.
func (b binding) key() string { return b.listener.key() }

// marker returns the common part of the markers of the listener's objects.
func (b binding) marker(o loadbalancer.Owner) Marker { return Marker{Owner: o, Listener: b.key()} }

// occupies reports whether the listener already has an object on an address.
func (b binding) occupies(a netip.Addr) bool {
	vs := b.service.object
	return b.service.exists() && slices.Contains(vs.VIPs, a) && vs.Port == b.listener.Port ||
		b.rule.exists() && b.rule.object.External == a
}

// bindListeners finds the objects of each listener, and the addresses of its virtual service. It also returns the
// unbound objects, which no listener uses.
func bindListeners(in input, front frontend) ([]binding, inventory, outcome) {
	bindings, unbound := bindObjects(in, front)
	out := in.outcome()
	if front.translated {
		arm := oneArm{
			in:       in,
			external: front.external[loadbalancer.IPv4],
			used:     map[netip.Addr]bool{},
		}
		bindings, out = arm.place(bindings)
	}
	if len(out.refusals) == 0 {
		out.add(checkPorts(in, front, bindings))
	}
	return bindings, unbound, out
}

// bindObjects assigns the existing objects to listeners.
func bindObjects(in input, front frontend) ([]binding, inventory) {
	var bindings []binding
	unbound := in.owned
	for _, l := range slices.SortedFunc(slices.Values(in.desired.Listeners), Listener.compare) {
		b := binding{listener: l}
		b.service, unbound.services = take(unbound.services, l.key())
		b.pool, unbound.pools = take(unbound.pools, l.key())
		if front.translated {
			b.rule, unbound.rules = take(unbound.rules, l.key())
			b.profile, unbound.profiles = take(unbound.profiles, l.key())
		} else {
			for _, f := range front.families {
				b.vips = append(b.vips, front.external[f])
			}
		}
		bindings = append(bindings, b)
	}
	return bindings, unbound
}

// checkPorts refuses ports that others use on the addresses.
func checkPorts(in input, front frontend, bindings []binding) outcome {
	out := in.outcome()
	for _, b := range bindings {
		for _, a := range front.addresses() {
			if b.occupies(a) {
				continue
			}
			if name := in.owned.occupantOf(a, b.listener); name != "" {
				out.refuse(PortInUse, "port %d/%s of the address %s belongs to %q: use another port or another address",
					b.listener.Port, b.listener.Protocol, a, name)
			}
		}
	}
	return out
}
