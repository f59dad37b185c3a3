// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// An attempt removes load balancers from all gateways once.
type attempt struct {
	purge    *Purge
	on       Gateways
	driver   *edge.Driver
	options  edge.PurgeOptions
	endpoint bool
	now      func() time.Time
	note     func(context.Context, time.Time) error // records a removal on the VCDCluster
}

func newAttempt(p *Purge, r Request, on Gateways) *attempt {
	a := &attempt{
		purge:    p,
		on:       on,
		driver:   on.Session.Balancers(),
		endpoint: r.Endpoint,
		now:      r.Now,
		note:     removalNote(r.Client, r.Cluster),
	}
	a.options = edge.PurgeOptions{
		Cluster: r.Cluster.Spec.InfraID,
		NAT:     checks.UsesNAT(r.Cluster),
		Only:    func(o loadbalancer.Owner) bool { return o.IsEndpoint() == r.Endpoint },
		Before:  a.before,
	}
	return a
}

// run clears the gateways. A failure on one gateway does not keep the others from being cleared. A refusal counts only
// if there was no other failure.
func (a *attempt) run(ctx context.Context) {
	refused := a.on.Lost
	failed := error(nil)
	for _, id := range a.on.IDs {
		if err := a.clear(ctx, id); errors.Is(err, loadbalancer.ErrRefused) {
			refused = errors.Join(refused, err)
		} else {
			failed = errors.Join(failed, err)
		}
	}
	a.purge.mu.Lock()
	defer a.purge.mu.Unlock()
	a.purge.running = false
	a.purge.err = cmp.Or(failed, refused)
	a.purge.retry = a.now().Add(retryAfter(a.purge.err))
}

// clear removes the objects on a gateway. If the gateway is proved gone, it removes the objects outside the gateway.
func (a *attempt) clear(ctx context.Context, id string) error {
	options := a.options
	err := a.driver.Purge(ctx, id, options)
	if !errors.Is(err, loadbalancer.ErrRefused) || a.on.VDC.ID == "" || id == a.on.Connected {
		return err
	}
	seen, lookErr := a.on.Session.LostGateway(ctx, a.on.VDC, id)
	if lookErr != nil {
		return fmt.Errorf("%w: %w", loadbalancer.ErrUnknown, lookErr)
	}
	now := a.now()
	verdict := gone.Decide(now, gone.Subject{
		Missing:  gone.Missing{Since: a.purge.missing[id]},
		Evidence: gone.Evidence(seen),
	}, nil)
	switch {
	case !verdict.Counts:
		delete(a.purge.missing, id)
		return err
	case a.purge.missing[id].IsZero():
		a.purge.missing[id] = now
	}
	if verdict.State != gone.Gone {
		return fmt.Errorf("%w: edge gateway %s is not visible: %s", loadbalancer.ErrRefused, id, verdict.Reason)
	}
	options.Gone = true
	return a.driver.Purge(ctx, id, options)
}

// before records a step that is about to run. It writes to the VCDCluster first, so that another manager can see that
// something was removed.
func (a *attempt) before(ctx context.Context, owner loadbalancer.Owner, step lb.Step) error {
	ctrl.LoggerFrom(ctx).Info("Removing a load balancer of the cluster", "step", step.String(), "service",
		owner.String())
	p := a.purge
	at := a.now()
	if !a.endpoint && at.Sub(p.noted) >= noteInterval { // only the running attempt uses p.noted
		if err := a.note(ctx, at); err != nil {
			return err
		}
		p.noted = at
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = step.String()
	p.removal = at
	p.removed = append(p.removed, string(step.Kind)+" "+step.Name)
	return nil
}
