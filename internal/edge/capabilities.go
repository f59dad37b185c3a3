package edge

import (
	"context"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

const (
	// maxMembers is how many members VCD takes for one pool.
	maxMembers = 100
	// doubtAge is how old the provider's settings may be when they make a load balancer impossible.
	doubtAge = time.Minute
)

// Capabilities returns what the gateway, the agreed API version and the rights of the user allow, as far as is known. Errors are those
// of Observe.
func (d *Driver) Capabilities(ctx context.Context, gateway string) (lb.Capabilities, error) {
	s, err := d.session(ctx)
	if err != nil {
		return lb.Capabilities{}, classified(err)
	}
	g := d.at(gateway)
	f, err := g.fact(ctx, s)
	if err != nil {
		return lb.Capabilities{}, classified(err)
	}
	return lb.Capabilities{
		SharedVIP: f.features.SharedVIP, MemberSets: f.features.MemberGroups && g.refusals.setsAllowed(), IPv6: f.features.IPv6VIP,
		PreserveClientIP: f.features.TransparentMode && f.balancer.Transparent, L4TLS: f.balancer.Premium || !f.balancer.Enabled,
		SourceRanges: f.features.SingleFirewallRule && d.opts.SourceRanges, MaxMembers: maxMembers,
	}, nil
}

// doubt expires the provider's settings: the addresses of a gateway, what its load balancer allows, its service engine groups. It reports
// whether any will be read anew: what was read within the last minute is believed.
func (d *Driver) doubt(gateway string) bool {
	g := d.at(gateway)
	facts, groups := g.facts.expire(doubtAge), g.groups.expire(doubtAge)
	return facts || groups
}
