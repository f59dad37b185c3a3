// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"fmt"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// maxRounds bounds how often a plan may ask for further facts, and a purge for what is left.
const maxRounds = 10

// PlanOptions change how a plan is made; the zero value plans for what is wanted, from lists up to [Options.MaxAge]
// old.
type PlanOptions struct {
	// Fresh observes the gateway anew.
	Fresh bool
	// Follow plans by [lb.Follow], which only keeps members in step with the nodes.
	Follow bool
	// NAT is set where load balancers may be behind DNAT rules: a missing right to see them is then an error, not
	// an empty list.
	NAT bool
}

// Plan observes a gateway, given by its URN, until everything that the plan depends on is known, and returns the
// plan. A refusal that rests on old knowledge of the provider's settings is checked once against new. Errors are
// those of Observe.
func (d *Driver) Plan(ctx context.Context, gateway string, want lb.Desired, opts PlanOptions) (loadbalancer.Plan, error) {
	plan, err := d.plan(ctx, gateway, want, opts)
	if err != nil || !lb.Doubtful(plan) || !d.doubt(gateway) {
		return plan, err
	}
	return d.plan(ctx, gateway, want, opts)
}

func (d *Driver) plan(ctx context.Context, gateway string, want lb.Desired, opts PlanOptions) (loadbalancer.Plan, error) {
	can, err := d.Capabilities(ctx, gateway)
	if err != nil {
		return loadbalancer.Plan{}, err
	}
	planned := lb.Make
	if opts.Follow {
		planned = lb.Follow
	}
	query := lb.Query{
		Owner:      want.Owner,
		Subnet:     want.Subnet,
		Fresh:      opts.Fresh,
		Translated: opts.NAT,
		OwnMembers: want.OwnMembers,
		Begins:     want.Owner.IsEndpoint() && !want.Absent && !opts.Follow,
	}
	for range maxRounds {
		seen, err := d.Observe(ctx, gateway, query)
		if err != nil {
			return loadbalancer.Plan{}, err
		}
		plan := planned(want, seen, can)
		if plan.Needs == 0 {
			return plan.Plan, nil
		}
		query.Facts |= plan.Needs
	}
	return loadbalancer.Plan{}, fmt.Errorf("the plan for %s never completes its observations: %w", want.Owner, loadbalancer.ErrUnknown)
}

const (
	// maxMembers is how many members VCD takes for one pool.
	maxMembers = 100
	// doubtAge is how old the provider's settings may be when they make a load balancer impossible.
	doubtAge = time.Minute
)

// Capabilities returns what the gateway, the agreed API version and the rights of the user allow, as far as is
// known. Errors are those of Observe.
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
		SharedVIP:        f.features.SharedVIP,
		MemberSets:       f.features.MemberGroups && g.refusals.setsAllowed(),
		MovesSharedVIP:   g.refusals.movesAllowed(),
		IPv6:             f.features.IPv6VIP && !f.balancer.LacksIPv6,
		OnlyIPv6:         f.balancer.LacksIPv4,
		PreserveClientIP: f.features.TransparentMode && f.balancer.Transparent,
		Premium: f.balancer.Premium ||
			!f.balancer.Enabled,
		Disabled:     f.balancer.Known && !f.balancer.Enabled,
		SourceRanges: f.features.SingleFirewallRule && d.opts.SourceRanges,
		MaxMembers:   maxMembers,
	}, nil
}

// doubt expires the provider's settings: the addresses of a gateway, what its load balancer allows, its service
// engine groups. It reports whether any will be read anew: what was read within the last minute is believed.
func (d *Driver) doubt(gateway string) bool {
	g := d.at(gateway)
	facts := g.facts.expire(doubtAge)
	groups := g.groups.expire(doubtAge)
	return facts || groups
}
