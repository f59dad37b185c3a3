// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// newAddresses are the addresses that the object of a step starts to use.
type newAddresses struct {
	services []netip.Addr // addresses without virtual services of other owners
	rules    []netip.Addr // addresses without DNAT rules of other owners
	owner    lb.Marker
}

// addressesOfService returns the addresses of a virtual service. If clients reach it through a rule, no other rules are
// checked.
func addressesOfService(vs lb.VirtualService) newAddresses {
	m, _ := lb.ParseMarker(vs.Description)
	a := newAddresses{services: vs.VIPs, owner: m}
	if m.Via == lb.ViaItself {
		a.rules = a.services
	}
	return a
}

// addressesOfRule returns both addresses of a rule. They include that of the virtual service, which was not checked
// when the virtual service was created.
func addressesOfRule(rule lb.Rule, claims []lb.Claim) newAddresses {
	m, _ := lb.ParseMarker(rule.Description)
	a := newAddresses{services: []netip.Addr{rule.Internal}, owner: m}
	if !areClaimed(claims, rule.External) {
		a.services = append(a.services, rule.External)
		a.rules = []netip.Addr{rule.External}
	}
	return a
}

// areClaimed reports whether all addresses are floating IPs of IP Spaces, which always have one owner.
func areClaimed(claims []lb.Claim, addresses ...netip.Addr) bool {
	return !slices.ContainsFunc(addresses, func(a netip.Addr) bool {
		return !slices.ContainsFunc(claims, func(c lb.Claim) bool { return c.Value == a })
	})
}

// ruleFollows reports whether a rule to a virtual service is not created yet. Its creation checks the addresses of
// both.
func ruleFollows(vs lb.VirtualService, rules []lb.Rule) bool {
	m, _ := lb.ParseMarker(vs.Description)
	return m.Via == lb.ViaNAT && !slices.ContainsFunc(rules, func(x lb.Rule) bool {
		return slices.Contains(vs.VIPs, x.Internal) && sameOwner(x.Description, vs.Description)
	})
}

// isSettled reports whether other rules of the owner use the addresses of a rule. Then they were checked before.
func isSettled(rule lb.Rule, rules []lb.Rule) bool {
	outside := false
	inside := false
	for _, x := range rules {
		if sameOwner(x.Description, rule.Description) {
			outside = outside || x.External == rule.External
			inside = inside || x.Internal == rule.Internal
		}
	}
	return outside && inside
}

// occupants are the owners of objects on the same addresses.
type occupants struct {
	ours   bool
	others map[string]string // names by ID
}

// occupants finds virtual services and DNAT rules on the addresses, without those that share them with the owner.
func (a newAddresses) occupants(services []lb.VirtualService, rules []lb.Rule) *occupants {
	found := &occupants{others: map[string]string{}}
	for _, vs := range services {
		if slices.ContainsFunc(vs.VIPs, func(vip netip.Addr) bool { return slices.Contains(a.services, vip) }) {
			found.add(a.owner, vs.Object)
		}
	}
	for _, rule := range rules {
		if !rule.Other && slices.Contains(a.rules, rule.External) {
			found.add(a.owner, rule.Object)
		}
	}
	return found
}

func (o *occupants) add(ours lb.Marker, x lb.Object) {
	theirs, _ := lb.ParseMarker(x.Description)
	switch {
	case theirs.Owner.Is(ours.Owner):
		o.ours = true
	case ours.Share == "" || theirs.Owner.Cluster != ours.Owner.Cluster || theirs.Share != ours.Share:
		o.others[x.ID] = x.Name
	}
}

// newcomer returns the name of an occupant that is not in before, or an empty string. before only contains the kind
// that was created, because no plan puts a rule on another owner's virtual service, or vice versa.
func (o *occupants) newcomer(before *occupants) string {
	for id, name := range o.others {
		if _, known := before.others[id]; !known {
			return name
		}
	}
	return ""
}

// verifySoleOwner verifies that the owner is alone on the addresses of a new object. Addresses in IP blocks cannot be
// reserved, so another writer may have found them free at the same time. VCD serializes writes to a gateway: the later
// writer sees the other, and withdraws.
func verifySoleOwner(
	ctx context.Context, w writer, a newAddresses, before *occupants, withdraw func(context.Context) error,
) error {
	services, err := w.gateway.services.get(ctx, w.session, w.fresh())
	if err != nil {
		return err
	}
	var rules []lb.Rule
	if len(a.rules) > 0 {
		if rules, err = w.gateway.rules.get(ctx, w.session, w.fresh()); err != nil {
			return err
		}
	}
	newcomer := a.occupants(services, rules).newcomer(before)
	if newcomer == "" {
		return nil
	}
	if err := withdraw(ctx); err != nil {
		return err
	}
	return failed(loadbalancer.ErrBusy, "the address was taken at the same time by %s", newcomer)
}
