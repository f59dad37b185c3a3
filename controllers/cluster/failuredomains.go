// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// reconcileFailureDomains reports whether there is a usable zone for control planes.
func reconcileFailureDomains(ctx context.Context, s *scope) (phases.Result, error) {
	found := &s.failureDomains
	if err := findFailureDomains(ctx, s.reconciler.Client, s.vcdCluster, found); err != nil {
		return phases.Done, err
	}
	if found.waits(s.vcdCluster) {
		return phases.Wait(intervals.Task, infrav1.NoFailureDomainReason,
			"Waiting for VCDDeploymentZones to be validated: %s", phases.Few(found.pending)), nil
	}
	if !slices.ContainsFunc(found.usable, placement.Zone.ControlPlane) {
		out := phases.Fail(intervals.Remedy, infrav1.NoFailureDomainReason, "%s", found.problem())
		if found.unseen {
			out = out.NoAccess() // VCD may hide objects that exist.
		}
		return out, nil
	}
	return phases.Done, nil
}
