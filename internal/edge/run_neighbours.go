package edge

import (
	"context"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// claimed says whether addresses are floating IPs of IP Spaces, which have one owner as it is.
func (r *run) claimed(addresses ...netip.Addr) bool {
	claims := r.gateway.claims.known()
	return !slices.ContainsFunc(addresses, func(a netip.Addr) bool {
		return !slices.ContainsFunc(claims, func(c claim) bool { return c.Address == a })
	})
}

// mine says whether a description is that of the owner whose description another is.
func (r *run) mine(description, own string) bool {
	m, ok := lb.ParseMarker(description)
	return ok && m.Owner.Is(r.owner(own))
}

// seats are addresses that something was put on, and for whom.
type seats struct {
	services []netip.Addr // where no virtual service of somebody else may be
	rules    []netip.Addr // where no DNAT rule of somebody else may begin
	owner    lb.Marker
}

// seatsOfService are the addresses of a virtual service. Where clients reach it by a rule, there are no other rules.
func (r *run) seatsOfService() seats {
	m, _ := lb.ParseMarker(r.step.Service.Description)
	s := seats{services: r.step.Service.VIPs, owner: m}
	if m.Via == lb.ViaItself {
		s.rules = s.services
	}
	return s
}

// seatsOfRule are both addresses of a rule: that of the virtual service, too, which was not looked after when it was made.
func (r *run) seatsOfRule() seats {
	spec := r.step.Rule
	m, _ := lb.ParseMarker(spec.Description)
	s := seats{services: []netip.Addr{spec.Internal}, owner: m}
	if !r.claimed(spec.External) {
		s.services, s.rules = append(s.services, spec.External), []netip.Addr{spec.External}
	}
	return s
}

// ruleFollows says whether a rule that leads to the virtual service of the step is still to be made. Then that is when addresses
// are looked after, of both.
func (r *run) ruleFollows() bool {
	m, _ := lb.ParseMarker(r.step.Service.Description)
	return m.Via == lb.ViaNAT && !slices.ContainsFunc(r.gateway.rules.known(), func(x vcd.NATRule) bool {
		return slices.Contains(r.step.Service.VIPs, address(x.Internal)) && r.mine(x.Description, r.step.Service.Description)
	})
}

// settled says whether other rules of the owner have the addresses of the step's: then they have been looked after.
func (r *run) settled() bool {
	spec := r.step.Rule
	outside, inside := false, false
	for _, x := range r.gateway.rules.known() {
		if r.mine(x.Description, spec.Description) {
			outside, inside = outside || address(x.External) == spec.External, inside || address(x.Internal) == spec.Internal
		}
	}
	return outside && inside
}

// neighbours are who has something on the same addresses.
type neighbours struct {
	ours   bool
	others map[string]string // names by id
}

// neighbours finds who has virtual services or DNAT rules on the addresses. Those who share them with the owner do not count.
func (s seats) neighbours(services []vcd.VirtualService, rules []vcd.NATRule) *neighbours {
	found := &neighbours{others: map[string]string{}}
	for _, vs := range services {
		if slices.ContainsFunc(vips(vs), func(a netip.Addr) bool { return slices.Contains(s.services, a) }) {
			found.add(s.owner, vs.ID, vs.Name, vs.Description)
		}
	}
	for _, rule := range rules {
		if rule.Type == "DNAT" && slices.Contains(s.rules, address(rule.External)) {
			found.add(s.owner, rule.ID, rule.Name, rule.Description)
		}
	}
	return found
}

func (n *neighbours) add(ours lb.Marker, id, name, description string) {
	theirs, _ := lb.ParseMarker(description)
	switch {
	case theirs.Owner.Is(ours.Owner):
		n.ours = true
	case ours.Share == "" || theirs.Owner.Cluster != ours.Owner.Cluster || theirs.Share != ours.Share:
		n.others[id] = name
	}
}

// newcomer is somebody who came to the addresses since before; empty if nobody did. Before are only those of the kind that was made: no plan
// puts a rule where a virtual service of somebody else is, nor the other way round.
func (n *neighbours) newcomer(before *neighbours) string {
	for id, name := range n.others {
		if _, known := before.others[id]; !known {
			return name
		}
	}
	return ""
}

// keep makes sure that the owner is alone on addresses that it has come to first: addresses of blocks cannot be reserved, so somebody
// else, who saw them free, too, may have come in the same moment, with a virtual service or a NAT rule. VCD makes one thing after the
// other on a gateway: who comes later sees the other, and gives up.
func (r *run) keep(ctx context.Context, s seats, before *neighbours, giveUp func(context.Context) error) error {
	services, err := r.gateway.services.get(ctx, r.session, r.fresh())
	if err != nil {
		return err
	}
	var rules []vcd.NATRule
	if len(s.rules) > 0 {
		if rules, err = r.gateway.rules.get(ctx, r.session, r.fresh()); err != nil {
			return err
		}
	}
	newcomer := s.neighbours(services, rules).newcomer(before)
	if newcomer == "" {
		return nil
	}
	if err := giveUp(ctx); err != nil {
		return err
	}
	return failed(lb.ErrBusy, "the address was taken in the same moment, by %s", newcomer)
}
