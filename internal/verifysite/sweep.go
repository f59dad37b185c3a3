// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// settleTimeout limits the wait for tasks that interrupted requests of the run may have started.
	settleTimeout = time.Minute
	// furtherSweeps is the maximum number of sweeps after the first one.
	furtherSweeps = 2
)

// remove removes all objects that the run created. A request without a response may still create an object, or change
// one that is being removed. In that case, further sweeps follow until one has no error.
func (b *bench) remove(ctx context.Context) error {
	err := b.sweep(ctx, removal...)
	if !b.doubtful {
		return err
	}
	for range furtherSweeps {
		if err := b.settle(ctx); err != nil {
			return err
		}
		if err = b.sweep(ctx, removal...); err == nil {
			return nil
		}
	}
	return err
}

// settle waits for tasks of requests that got no response, for at most a minute.
func (b *bench) settle(ctx context.Context) error {
	deadline := time.Now().Add(settleTimeout)
	for time.Now().Before(deadline) {
		tasks, err := b.session.Tasks.Since(ctx, b.began)
		if err != nil {
			return ignoreHidden(err)
		}
		running := slices.ContainsFunc(tasks, func(t vcd.Task) bool {
			return t.State == vcd.TaskRunning && t.Operation != "createDefinedEntity"
		})
		if !running {
			return nil
		}
		if err := b.calls.pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes the objects of some kinds that the run created. It skips kinds of which the run created none.
func (b *bench) sweep(ctx context.Context, kinds ...kind) error {
	where := place{}
	if b.vdc.ID != "" {
		where.vdcs = []vcd.Ref{b.vdc.Ref}
	}
	if b.gateway.ID != "" {
		where.gateways = []string{b.gateway.ID}
	}
	var errs []error
	for _, k := range kinds {
		if b.created[k] == 0 {
			continue
		}
		found, err := b.objects().find(ctx, k, where)
		errs = append(errs, err)
		for _, x := range found {
			if x.Run == b.run {
				errs = append(errs, b.objects().removeOne(ctx, x))
			}
		}
	}
	return errors.Join(errs...)
}

// objects returns a remover for the objects of the run.
func (b *bench) objects() remover {
	return remover{
		calls:    b.calls,
		run:      b.run,
		versions: b.versions,
	}
}

// ours lists the objects of a kind that the run has on its gateway.
func (b *bench) ours(ctx context.Context, k kind) ([]Leftover, error) {
	found, err := b.objects().findOnGateway(ctx, k, b.gateway.ID)
	var own []Leftover
	for _, x := range found {
		if x.Run == b.run {
			own = append(own, x)
		}
	}
	return own, err
}
