// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"fmt"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// maxRounds limits the rounds in which a plan requests further facts, or a purge removes remaining objects.
const maxRounds = 10

// PlanOptions change how a plan is computed. The zero value plans the desired state from lists with an age of at most
// [Options.MaxAge].
type PlanOptions struct {
	// Fresh requires data that is read after the call.
	Fresh bool
	// Follow plans with [lb.Follow], which only keeps members in sync with the nodes.
	Follow bool
	// NAT is set if load balancers may be behind DNAT rules. Then a missing right to see the rules is an error instead
	// of an empty list.
	NAT bool
}

// Plan observes a gateway, given by its URN, until all facts that the plan depends on are known, and returns the plan.
// If a refusal depends on old settings of the provider, it plans once more with current settings. Errors are those of
// Observe.
func (d *Driver) Plan(ctx context.Context, gateway string, want lb.Desired, opts PlanOptions) (loadbalancer.Plan, error) {
	plan, err := d.plan(ctx, gateway, want, opts)
	if err != nil || !lb.Doubtful(plan) || !d.expireSettings(gateway) {
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
	// maxMembers is the maximum number of members that VCD supports in a pool.
	maxMembers = 100
	// doubtAge is the maximum age of the provider's settings if they make a load balancer impossible.
	doubtAge = time.Minute
)

// Capabilities returns the known capabilities that result from the gateway, the negotiated API version and the rights
// of the user. Errors are those of Observe.
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
		Disabled:       f.balancer.Known && !f.balancer.Enabled,
		SourceRanges:   f.features.SingleFirewallRule && d.opts.SourceRanges,
		HealthMonitors: f.features.HealthMonitors,
		HTTPPolicies:   f.features.HTTPPolicies,
		MaxMembers:     maxMembers,
	}, nil
}

// expireSettings expires the provider's settings: the addresses of a gateway, the capabilities of its load balancer,
// and its service engine groups. It reports whether any of them will be read again. Settings that were read within the
// last minute are kept.
func (d *Driver) expireSettings(gateway string) bool {
	g := d.at(gateway)
	facts := g.facts.expire(doubtAge)
	groups := g.groups.expire(doubtAge)
	return facts || groups
}
