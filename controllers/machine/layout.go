// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A layout decides which vApp the machine's VM is created in.
type layout struct {
	session *session.Session
	inputs  *inputs
	records *records
	drivers *vapp.Drivers // what runs in the workload cluster
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

// nextVApp is how soon the machine goes on in the next vApp.
const nextVApp = time.Second

// ownProblem returns why the machine must not get another vApp than others. That of a zone does not depend on whether
// the workload cluster can be asked.
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

// problem says why nothing may or can be done with a vApp.
func (l layout) problem(ctx context.Context, vApp vcd.VApp) (phases.Result, error) {
	owns, err := marks.OwnsVApp(ctx, l.session, l.inputs.vcdCluster.Spec.InfraID, vApp)
	switch {
	case err != nil:
		return session.Unread(err, "Reading the metadata of vApp "+vApp.Name)
	case !owns:
		return phases.Fail(session.RemedyPoll, infrav1.NameConflictReason,
			"vApp %s exists but does not belong to this cluster: rename or delete it in VCD, or recreate the "+
				"cluster with another spec.vApp.name", vApp.Name), nil
	case len(vApp.Tasks) > 0:
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on vApp %s", vApp.Name), nil
	}
	return phases.Done, nil
}

// next makes the next pass create the VM in the next vApp of the cluster. Which that is, is stored before
// anything is created in it.
func (l layout) next(ctx context.Context, why string) (phases.Result, error) {
	if l.now().Sub(l.inputs.creationRequested()) < gone.LateRequest {
		return phases.Wait(session.RemedyPoll, infrav1.EntityBusyReason,
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

// driverProblem returns why the machine must not get another vApp than others: drivers that search for nodes in one
// vApp run in the cluster, or may run. The message takes what runs.
func (l layout) driverProblem(ctx context.Context, message string) phases.Result {
	found, known := l.drivers.In(ctx, l.inputs.cluster, l.now())
	switch {
	case !known:
		return phases.Unsure(vapp.UnknownRetry, infrav1.WorkloadClusterUnreachableReason,
			"Another vApp is possible only after a check of the workload cluster, but its API server is "+
				"unreachable: check the Cluster")
	case len(found) > 0:
		return phases.Fail(vapp.DriversRetry, infrav1.LegacyDriverInstalledReason, message, phases.Few(found))
	}
	return phases.Done
}
