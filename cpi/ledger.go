package cpi

import (
	"context"
	"errors"
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// A Ledger keeps a record of load balancers outside Kubernetes. It is told, never asked: it neither waits nor fails.
type Ledger interface {
	// Note tells what stands for an owner at a place.
	Note(Entry)
}

// An Entry is what a [Ledger] is told.
type Entry struct {
	Place string // its id
	Owner lb.Owner
	// Absent says that nothing is wished to stand.
	Absent bool
	// Settled says that all is as wished; else it is on the way there, or only being looked at.
	Settled   bool
	Objects   []lb.ObjectStatus
	Addresses []netip.Addr
	// Err says why a wish cannot be met, or why nothing is known; then nothing else is said.
	Err error
}

// Recorded returns a balancer that tells a ledger what it sees.
func Recorded(b Balancer, l Ledger) Balancer { return &recorded{b, l} }

type recorded struct {
	Balancer

	ledger Ledger
}

// Plan tells the ledger what a look has shown.
func (r *recorded) Plan(ctx context.Context, place string, request PlanRequest) (lb.Plan, error) {
	plan, err := r.Balancer.Plan(ctx, place, request)
	if request.Follow {
		return plan, err // it says nothing of the rest
	}
	e := Entry{Place: place, Owner: request.Want.Owner, Absent: request.Want.Absent, Settled: plan.Done()}
	switch {
	case errors.Is(err, lb.ErrBusy), ctx.Err() != nil:
		return plan, err
	case err != nil:
		e.Err = err
	case len(plan.Refusals) > 0:
		e.Err = errors.New(plan.Refusals[0].Message)
	default:
		e.Objects, e.Addresses = plan.Status.Objects, plan.Status.Addresses
	}
	r.ledger.Note(e)
	return plan, err
}
