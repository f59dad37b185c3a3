// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// settling is how long the removal waits for tasks of the run that an interrupted request started.
const settling = time.Minute

// remove removes all that the run created. A request whose answer did not arrive may still create something, or change
// what is removed: then a second sweep decides.
func (b *bench) remove(ctx context.Context) error {
	if err := b.sweep(ctx, removal...); !b.doubtful {
		return err
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	return b.sweep(ctx, removal...)
}

// settle waits a while for tasks that the run may have started without having the answer.
func (b *bench) settle(ctx context.Context) error {
	deadline := time.Now().Add(settling)
	for time.Now().Before(deadline) {
		tasks, err := b.session.Tasks.Since(ctx, b.began)
		if err != nil {
			return unlessHidden(err)
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

// sweep removes what the run created of some kinds. Kinds of which it created nothing are not looked for.
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
		if b.made[k] == 0 {
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

// objects finds and removes the objects of the run.
func (b *bench) objects() remover {
	return remover{
		calls:    b.calls,
		run:      b.run,
		versions: b.versions,
	}
}

// ours lists what the run has of a kind on its gateway.
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
