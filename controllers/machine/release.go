// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// releaseMachine releases the addresses of the machine and removes the finalizer of the VCDMachine. It first records a
// shared vApp on the VCDCluster.
func releaseMachine(ctx context.Context, s *scope) (phases.Result, error) {
	leaves, err := mustKeepVM(ctx, s.reconciler.Client, &s.inputs)
	if err != nil {
		return phases.Done, err
	}
	if s.inputs.vcdCluster != nil && !vapp.PerMachine(s.inputs.vcdCluster) && s.inputs.mayHaveVM() && !leaves {
		switch err := s.records.saveVAppID(ctx); {
		case apierrors.IsConflict(err):
			return phases.Wait(intervals.Busy, infrav1.EntityBusyReason,
				"Waiting to record the vApp of the VM on the VCDCluster, because another client is writing to it"), nil
		case err != nil:
			return phases.Done, err
		}
	}
	if !leaves { // Otherwise, the addresses stay with the VM.
		if err := newClaims(s).release(ctx); err != nil {
			return phases.Done, err
		}
	}
	phases.Release(s.inputs.vcdMachine, infrav1.MachineFinalizer)
	return phases.Done, nil
}
