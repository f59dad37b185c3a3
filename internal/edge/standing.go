package edge

import (
	"context"
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Standing returns the objects of kinds that are seen on a gateway, whosever they are, read anew; those with several addresses once for each. Kinds
// are virtual services, pools, NAT rules and port profiles. Errors are those of Observe, also if objects of a kind may not be seen.
func (d *Driver) Standing(ctx context.Context, gateway string, kinds []lb.Kind) ([]lb.ObjectStatus, error) {
	s, err := d.session(ctx)
	if err != nil {
		return nil, classified(err)
	}
	g, want := d.at(gateway), demand{maxAge: d.opts.MaxAge, after: d.next()}
	var out []lb.ObjectStatus
	add := func(kind lb.Kind, r vcd.Ref, addresses ...netip.Addr) {
		for _, a := range append(addresses, netip.Addr{}) {
			out = append(out, lb.ObjectStatus{Kind: kind, ID: r.ID, Name: r.Name, Address: a})
		}
	}
	counts := map[lb.Kind]func() error{
		lb.KindService: func() error {
			return count(ctx, s, want, g.services, func(x vcd.VirtualService) { add(lb.KindService, x.Ref, vips(x)...) })
		},
		lb.KindPool: func() error {
			return count(ctx, s, want, g.pools, func(x vcd.PoolSummary) { add(lb.KindPool, x.Ref) })
		},
		lb.KindRule: func() error {
			return count(ctx, s, want, g.rules, func(x vcd.NATRule) { add(lb.KindRule, vcd.Ref{ID: x.ID, Name: x.Name}, ruleOf(x).External) })
		},
		lb.KindProfile: func() error {
			return count(ctx, s, want, g.profiles, func(x vcd.PortProfile) { add(lb.KindProfile, x.Ref) })
		},
	}
	for _, kind := range kinds {
		if err := first(counts[kind], func() error { return g.hides(true, kind) }); err != nil {
			return nil, classified(err)
		}
	}
	return out, nil
}
