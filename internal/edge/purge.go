package edge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// PurgeOptions say what to remove.
type PurgeOptions struct {
	// Cluster is the id of the cluster; Gateways are URNs.
	Cluster  string
	Gateways []string
	// NAT is set where load balancers may be behind DNAT rules ([PlanOptions.NAT]).
	NAT bool
	// Before is called before each step; its error ends the purge. nil: no call.
	Before func(ctx context.Context, owner lb.Owner, step lb.Step) error
}

// Purge removes everything that a cluster has on some gateways. nil means that nothing is left; errors wrap [lb.ErrBusy],
// [lb.ErrRefused] or [lb.ErrUnknown]. A gateway that fails does not keep the others from being cleared, and [lb.ErrRefused] is
// returned only if nothing else failed.
func (d *Driver) Purge(ctx context.Context, opts PurgeOptions) error {
	var refused, failed error
	for _, gateway := range opts.Gateways {
		p := purge{PurgeOptions: opts, driver: d, gateway: gateway}
		if err := p.run(ctx); errors.Is(err, lb.ErrRefused) {
			refused = errors.Join(refused, err)
		} else {
			failed = errors.Join(failed, err)
		}
	}
	return cmp.Or(failed, refused)
}

// A purge clears one gateway.
type purge struct {
	PurgeOptions

	driver  *Driver
	gateway string
}

func (p purge) run(ctx context.Context) error {
	for range maxRounds {
		owners, err := p.driver.Owners(ctx, p.gateway, p.Cluster)
		if err != nil {
			return err
		}
		if len(owners) == 0 {
			return p.verify(ctx)
		}
		slices.Reverse(owners) // what all Services share goes last
		steps := 0
		for _, owner := range owners {
			n, err := p.remove(ctx, owner)
			if err != nil {
				return err
			}
			steps += n
		}
		if steps == 0 {
			return fmt.Errorf("%w: VCD is still working on %s", lb.ErrBusy, owners[0])
		}
	}
	return fmt.Errorf("%w: something always is left", lb.ErrUnknown)
}

// verify makes sure that an empty list is not due to a missing right: DNAT rules may be all that is left.
func (p purge) verify(ctx context.Context) error {
	if !p.NAT {
		return nil
	}
	_, err := p.driver.Observe(ctx, p.gateway, lb.Query{Owner: lb.Owner{Cluster: p.Cluster}, Facts: lb.Forwardings, Translated: true})
	return err
}

// remove runs the steps that remove an owner's objects, and returns how many there were.
func (p purge) remove(ctx context.Context, owner lb.Owner) (int, error) {
	plan, err := p.driver.plan(ctx, p.gateway, lb.Desired{Owner: owner, Absent: true}, PlanOptions{Fresh: true, NAT: p.NAT})
	if err != nil {
		return 0, err
	}
	if len(plan.Refusals) > 0 {
		return 0, fmt.Errorf("%w: %s: %s", lb.ErrRefused, owner, plan.Refusals[0].Message)
	}
	for _, step := range plan.Steps {
		if p.Before != nil {
			if err := p.Before(ctx, owner, step); err != nil {
				return 0, err
			}
		}
		if err := p.driver.Run(ctx, p.gateway, step); err != nil {
			return 0, err
		}
	}
	return len(plan.Steps), nil
}
