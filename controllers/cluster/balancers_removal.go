package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// A removal is one try to remove everything that a cluster has on its gateways.
type removal struct {
	driver     session.Balancers
	at         place
	cluster    string
	translated bool                                 // load balancers may be reached through DNAT rules
	doing      func(context.Context, lb.Step) error // is asked before each step

	gateway string // the one that is being worked on
}

// run removes what is there until nothing is left, as far as that can be done now. An error wraps one of package lb. One gateway keeps nothing on
// another: who refuses is told of when nothing else is to be waited for.
func (r removal) run(ctx context.Context) error {
	var failed error
	refused := r.at.lost
	for _, r.gateway = range r.at.gateways {
		if err := r.clear(ctx); errors.Is(err, lb.ErrRefused) {
			refused = errors.Join(refused, err)
		} else {
			failed = errors.Join(failed, err)
		}
	}
	return cmp.Or(failed, refused)
}

// clear removes what is on one gateway.
func (r removal) clear(ctx context.Context) error {
	for range removalRounds {
		owners, err := r.driver.Owners(ctx, r.gateway, r.cluster)
		if err != nil {
			return err
		}
		if len(owners) == 0 {
			return r.unseen(ctx)
		}
		slices.Reverse(owners) // What all share goes last.
		steps := 0
		for _, owner := range owners {
			n, err := r.remove(ctx, owner)
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

// unseen makes sure that it is no missing right by which nothing is seen: DNAT rules may be all that is left.
func (r removal) unseen(ctx context.Context) error {
	if !r.translated {
		return nil
	}
	_, err := r.driver.Observe(ctx, r.gateway, lb.Query{Owner: lb.Owner{Cluster: r.cluster}, Facts: lb.Forwardings, Translated: true})
	return err
}

// remove takes the steps that lead to nothing being left of an owner, and says how many there were.
func (r removal) remove(ctx context.Context, owner lb.Owner) (int, error) {
	plan, err := r.plan(ctx, owner)
	if err != nil {
		return 0, err
	}
	if len(plan.Refusals) > 0 {
		return 0, fmt.Errorf("%w: %s: %s", lb.ErrRefused, owner, plan.Refusals[0].Message)
	}
	for _, step := range plan.Steps {
		ctrl.LoggerFrom(ctx).Info("Removing a load balancer of the cluster", "step", step.String(), "service", owner.String())
		if err := r.doing(ctx, step); err != nil {
			return 0, err
		}
		if err := r.driver.Run(ctx, r.gateway, step); err != nil {
			return 0, err
		}
	}
	return len(plan.Steps), nil
}

// plan observes as much as the plan for nothing needs to know.
func (r removal) plan(ctx context.Context, owner lb.Owner) (lb.Plan, error) {
	can, err := r.driver.Capabilities(ctx, r.gateway)
	if err != nil {
		return lb.Plan{}, err
	}
	query, plan := lb.Query{Owner: owner, Fresh: true, Translated: r.translated}, lb.Plan{}
	for range removalRounds {
		seen, err := r.driver.Observe(ctx, r.gateway, query)
		if err != nil {
			return lb.Plan{}, err
		}
		if plan = lb.Make(lb.Desired{Owner: owner, Absent: true}, seen, can); plan.Needs == 0 {
			return plan, nil
		}
		query.Facts |= plan.Needs
	}
	return plan, fmt.Errorf("%w: the plan to remove %s always needs to know more", lb.ErrUnknown, owner)
}
