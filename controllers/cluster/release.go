// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// releaseCluster frees the claimed address and lets the API server delete the VCDCluster.
func releaseCluster(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	all, err := s.duplicates(ctx)
	if err == nil {
		err = s.freeAddresses(ctx, len(all) > 0)
	}
	switch {
	case err != nil:
		return phases.Done, err
	case len(all) > 0:
		leftToDuplicate(s.reconciler.Recorder, c)
	default:
		if disks := s.remainingDisks(ctx); len(disks) > 0 {
			disksLeft(s.reconciler.Recorder, c, disks)
		}
	}
	s.reconciler.Drivers.Forget(s.cluster)
	s.reconciler.purges.Drop(c.UID)
	s.reconciler.endpoints.Drop(c.UID)
	s.reconciler.Endpoints.Forget(c.UID)
	s.reconciler.homes.Drop(c.UID)
	controllerutil.RemoveFinalizer(c, infrav1.ClusterFinalizer)
	return phases.Done, nil
}
