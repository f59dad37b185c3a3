// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// inspect inspects the workload cluster if an inspection is due.
func (s *scope) inspect(ctx context.Context) (phases.Result, error) {
	return s.set.Inspect(ctx, s.reconciler.inspections.Of(s.vcdCluster.UID), s.reconciler.SyncPeriod, s.converge)
}

// converge compares the workload cluster with the desired objects, and repairs differences.
func (s *scope) converge(ctx context.Context, w *addon.Guest) (phases.Result, error) {
	if out, err := (&guest{w}).foreign(ctx); err != nil || out != phases.Done {
		return out, err
	}
	removed, err := s.set.RemoveDropped(ctx, w)
	if len(removed) > 0 {
		uninstalled(s.reconciler.Recorder, s.vcdCluster, removed)
	}
	if err != nil {
		return phases.Done, err
	}
	found, wrong, err := w.Compare(ctx, s.set.Secret.Data[resourceset.ManifestsKey])
	switch {
	case err != nil:
		return phases.Done, err
	case len(wrong) > 0:
		return s.repair(ctx, wrong)
	}
	if out, err := available(found); err != nil || out != phases.Done {
		return out, err
	}
	return announces(found)
}

// repair makes Cluster API apply all objects again, unless it may not have had time yet to apply the last change.
func (s *scope) repair(ctx context.Context, wrong []string) (phases.Result, error) {
	if s.set.Fresh(s.reconciler.SyncPeriod) {
		return s.set.Applying(wrong), nil
	}
	if err := s.set.Again(ctx, s.render, s.notes()); err != nil {
		return phases.Done, fmt.Errorf("rendering the cloud controller manager: %w", err)
	}
	repaired(s.reconciler.Recorder, s.vcdCluster, wrong)
	return s.set.Applying(wrong), nil
}
