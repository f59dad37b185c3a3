// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/lease"
)

// keepLease renews the lease of the machine's vApp. The inventory shows when a renewal is due, and nothing is requested
// before.
func keepLease(ctx context.Context, s *scope) {
	if s.vm.listed == nil || !s.inputs.hasRun() {
		return
	}
	keeper := lease.Keeper{
		Renewals: &s.reconciler.renewals,
		Session:  s.session,
		Machine:  s.inputs.vcdMachine,
		VDC:      s.target.vdc,
		Row:      *s.vm.listed,
		Cluster:  s.inputs.vcdCluster.Spec.InfraID,
		Recorder: s.reconciler.Recorder,
		Wake:     s.wake(),
		Now:      s.now(),
	}
	if after := keeper.Keep(ctx); after > 0 {
		s.schedule.within(after)
	}
}
