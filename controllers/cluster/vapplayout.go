// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// reconcileVAppLayout reports drivers in the workload cluster that do not support the layout. An unreachable workload
// cluster is not a problem of the VCDCluster; its machines wait.
func reconcileVAppLayout(ctx context.Context, s *scope) (phases.Result, error) {
	if found, _ := s.reconciler.Drivers.In(ctx, s.cluster, s.now()); len(found) > 0 {
		message := vapp.LegacyDriversInZones
		if vapp.PerMachine(s.vcdCluster) {
			message = vapp.LegacyDrivers
		}
		return phases.Fail(vapp.DriversRetry, infrav1.LegacyDriverInstalledReason, message, phases.Few(found)), nil
	}
	return phases.Done, nil
}
