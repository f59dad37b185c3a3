package cpi

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// A Balancer makes load balancers at places: gateways, networks or zones of a cloud. What a step is, is its own affair.
type Balancer interface {
	// Place returns the id of the place that the configuration gives a name. It is the same as long as the place is there, however the
	// configuration changes, and two names of one place have one id. All other functions take ids, also of places that the configuration
	// does not name. Errors are as those of Plan.
	Place(ctx context.Context, name string) (id string, err error)
	// Plan looks at everything that the owner of a wish has at a place and says what leads to the wish. Errors wrap [lb.ErrBusy],
	// [lb.ErrRefused] or [lb.ErrUnknown]; there is no plan from half a look.
	Plan(ctx context.Context, place string, request PlanRequest) (lb.Plan, error)
	// Run runs one step and waits until it is done, or ctx ends. Errors are as those of Plan.
	Run(ctx context.Context, place string, step lb.Step) error
	// Owners returns whoever of the cluster has something at a place.
	Owners(ctx context.Context, place string) ([]lb.Owner, error)
}

// A PlanRequest asks for a plan.
type PlanRequest struct {
	Want lb.Desired
	// Fresh asks for a look that is not older than the request.
	Fresh bool
	// Follow asks only for what lets a load balancer that stands follow the nodes of the wish, which else is refused.
	Follow bool
}
