// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// releaseCluster releases the claimed addresses, and allows the API server to delete the VCDCluster.
func releaseCluster(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	r := s.reconciler
	all, err := ownership.Duplicates(ctx, r.Client, c)
	if err != nil {
		return phases.Done, err
	}
	claims := s.claims()
	if len(all) > 0 {
		claims.ID = "" // The original of a copy has the same ID, and must keep its addresses.
	}
	if err := freeAddresses(ctx, claims, c); err != nil {
		return phases.Done, err
	}
	if len(all) > 0 {
		sharedRetained(r.Recorder, c)
	} else if disks := remainingDisks(ctx, s.places(), c); len(disks) > 0 {
		disksRetained(r.Recorder, c, disks)
	}
	r.Drivers.Forget(s.cluster)
	r.purges.Drop(c.UID)
	r.endpoints.Drop(c.UID)
	r.Endpoints.Forget(c.UID)
	r.homes.Drop(c.UID)
	phases.Release(c, infrav1.ClusterFinalizer)
	return phases.Done, nil
}
