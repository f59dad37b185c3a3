// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// newAddresses are addresses that the object of a step is put on.
type newAddresses struct {
	services []netip.Addr // where no virtual service of another owner may be
	rules    []netip.Addr // where no DNAT rule of another owner may begin
	owner    lb.Marker
}

// addressesOfService are the addresses of a virtual service. Where clients reach it by a rule, there are no other
// rules.
func addressesOfService(vs lb.VirtualService) newAddresses {
	m, _ := lb.ParseMarker(vs.Description)
	a := newAddresses{services: vs.VIPs, owner: m}
	if m.Via == lb.ViaItself {
		a.rules = a.services
	}
	return a
}

// addressesOfRule are both addresses of a rule: also that of the virtual service, which was not checked when that
// was created.
func addressesOfRule(rule lb.Rule, claims []lb.Claim) newAddresses {
	m, _ := lb.ParseMarker(rule.Description)
	a := newAddresses{services: []netip.Addr{rule.Internal}, owner: m}
	if !areClaimed(claims, rule.External) {
		a.services = append(a.services, rule.External)
		a.rules = []netip.Addr{rule.External}
	}
	return a
}

// areClaimed reports whether addresses are floating IPs of IP Spaces, which have one owner anyway.
func areClaimed(claims []lb.Claim, addresses ...netip.Addr) bool {
	return !slices.ContainsFunc(addresses, func(a netip.Addr) bool {
		return !slices.ContainsFunc(claims, func(c lb.Claim) bool { return c.Value == a })
	})
}

// ruleFollows reports whether a rule that leads to a virtual service is still to be created: its creation checks the
// addresses of both.
func ruleFollows(vs lb.VirtualService, rules []lb.Rule) bool {
	m, _ := lb.ParseMarker(vs.Description)
	return m.Via == lb.ViaNAT && !slices.ContainsFunc(rules, func(x lb.Rule) bool {
		return slices.Contains(vs.VIPs, x.Internal) && sameOwner(x.Description, vs.Description)
	})
}

// isSettled reports whether other rules of the owner have the addresses of a rule: then they were checked.
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

// occupants are the owners of what is on the same addresses.
type occupants struct {
	ours   bool
	others map[string]string // names by id
}

// occupants finds virtual services and DNAT rules on the addresses. Those that share them with the owner do not count.
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

// newcomer is an occupant that was not there before; empty if there is none. Before are only those of the kind that
// was created: no plan puts a rule on another owner's virtual service, nor the other way round.
func (o *occupants) newcomer(before *occupants) string {
	for id, name := range o.others {
		if _, known := before.others[id]; !known {
			return name
		}
	}
	return ""
}

// keep makes sure that the owner is alone on addresses that it has just taken: addresses of blocks cannot be
// reserved, so that another writer may have found them free in the same moment. VCD serializes writes to a gateway:
// the later one sees the other, and withdraws.
func keep(
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
