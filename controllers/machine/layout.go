// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A layout decides in which vApp the machine's VM is created.
type layout struct {
	session *session.Session
	inputs  *inputs
	records *records
	drivers *vapp.Drivers // finds legacy drivers in the workload cluster
	now     func() time.Time
}

func newLayout(s *scope) layout {
	return layout{
		session: s.session,
		inputs:  &s.inputs,
		records: s.records,
		drivers: s.reconciler.Drivers,
		now:     s.now,
	}
}

// nextVApp is the delay before the machine continues in the next vApp.
const nextVApp = time.Second

// ownProblem returns why the machine must not get a vApp that other machines do not use. For the vApp of a zone, an
// unreachable workload cluster is no problem.
func (l layout) ownProblem(ctx context.Context) phases.Result {
	switch {
	case vapp.PerMachine(l.inputs.vcdCluster):
		return l.driverProblem(ctx, vapp.LegacyDrivers)
	case vapp.Spread(l.inputs.vcdCluster, l.inputs.zoneName()):
		if out := l.driverProblem(ctx, vapp.LegacyDriversInZones); !out.IsUnknown() {
			return out
		}
	}
	return phases.Done
}

// problem returns why a vApp must not be used, or cannot be used at the moment.
func (l layout) problem(ctx context.Context, vApp vcd.VApp) (phases.Result, error) {
	owns, err := marks.OwnsVApp(ctx, l.session, l.inputs.vcdCluster.Spec.InfraID, vApp)
	switch {
	case err != nil:
		return problems.OfRead(err, "Reading the metadata of vApp "+vApp.Name)
	case !owns:
		return phases.Fail(intervals.Remedy, infrav1.NameConflictReason,
			"vApp %s exists but does not belong to this cluster: rename or delete it in VCD, or recreate the cluster with another spec.vApp.name", vApp.Name), nil
	case len(vApp.Tasks) > 0:
		return vAppBusy(intervals.Busy, vApp.Name), nil
	}
	return phases.Done, nil
}

// next makes the next pass create the VM in the next vApp of the cluster. The number of that vApp is stored before
// anything is created in it. why starts with the name of the current vApp.
func (l layout) next(ctx context.Context, why string) (phases.Result, error) {
	if l.now().Sub(l.inputs.creationRequested()) < gone.LateRequest {
		return phases.Wait(intervals.Remedy, infrav1.EntityBusyReason,
			"vApp %s, and a request to create the VM in it may still be in progress", why), nil
	}
	if out := l.driverProblem(ctx, vapp.LegacyDriversFull); out != phases.Done {
		return out, nil
	}
	l.inputs.vcdMachine.Spec.RecordedState.VAppNumber = int32(l.inputs.vAppNumber() + 1) //nolint:gosec // It is bounded.
	if err := l.records.patcher.Save(ctx); err != nil {
		return phases.Done, err
	}
	ctrl.LoggerFrom(ctx).Info("Continuing in another vApp", "reason", "vApp "+why, "vApp", l.inputs.vAppName())
	return phases.Wait(nextVApp, infrav1.EntityBusyReason, "vApp %s: continuing in vApp %s", why, l.inputs.vAppName()), nil
}

// driverProblem returns why the machine must not get a vApp that other machines do not use: drivers that search for
// nodes in a single vApp run, or may run, in the cluster. message is a format for the names of these drivers.
func (l layout) driverProblem(ctx context.Context, message string) phases.Result {
	found, known := l.drivers.In(ctx, l.inputs.cluster, l.now())
	switch {
	case !known:
		return phases.Unsure(vapp.UnknownRetry, infrav1.WorkloadClusterUnreachableReason,
			"Another vApp is possible only after a check of the workload cluster, but its API server is unreachable: check the Cluster")
	case len(found) > 0:
		return phases.Fail(vapp.DriversRetry, infrav1.LegacyDriverInstalledReason, message, phases.Few(found))
	}
	return phases.Done
}

// vAppShared waits for machines of the vApp that are created together with this one, or before it. Both waits have the
// same message, so that the status is not written again when the second follows the first.
func vAppShared(after time.Duration, vApp string) phases.Result {
	return phases.Wait(after, infrav1.EntityBusyReason, "Waiting for other machines that are being created in vApp %s", vApp)
}

// vAppBusy waits for the end of a task that locks the vApp.
func vAppBusy(after time.Duration, vApp string) phases.Result {
	return phases.Wait(after, infrav1.EntityBusyReason, "Waiting for another task on vApp %s", vApp)
}
