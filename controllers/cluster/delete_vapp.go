// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteVApp ensures that the vApps of the cluster are gone, except for those of other owners and those that are kept.
// A zone that cannot be queried does not delay the others.
func deleteVApp(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || vapp.PerMachine(c) {
		// Nothing is created before the ID is stored, and machines delete their own vApps.
		return phases.Done, nil
	}
	places := s.places()
	homes := places.homes()
	s.vAppsGone = len(homes) > 0
	var all first
	for _, home := range homes {
		d := &vAppDeletion{
			client:     s.reconciler.Client,
			live:       s.reconciler.Live,
			recorder:   s.reconciler.Recorder,
			vcdCluster: c,
			save:       s.store.patcher.Save,
			wake:       s.wake,
			now:        s.now(),
			records: vAppRecords{
				vcdCluster:  c,
				clusterName: places.clusterName,
				zone:        home.Zone,
			},
		}
		out, err := d.run(ctx, places, home)
		all.add(vapp.OrKeep(ctx, s.reconciler.Recorder, c, "VCDCluster", home.First, out, err))
		s.vAppsGone = s.vAppsGone && (d.gone || d.unused && len(homes) > 1)
	}
	return all.out, all.err
}

// A vAppDeletion deletes the vApps of a cluster in one VDC.
type vAppDeletion struct {
	client     client.Client
	live       client.Reader
	recorder   events.EventRecorder
	vcdCluster *infrav1.VCDCluster
	save       func(context.Context) error // stores the recorded state of the VCDCluster
	wake       func()                      // triggers another reconcile
	now        time.Time
	records    vAppRecords // of the VDC

	at      place         // set by run
	running phases.Result // deletion in progress; set by settle
	foreign []string      // names of vApps of other owners; set by removeNamed
	left    []string      // URNs of vApps that stay; set by removeNamed and removeRecorded
	gone    bool          // whether all are proved gone; set by proveGone
	unused  bool          // whether none was ever requested; set by unlessNeverRequested and proveGone
}

// run takes the next step in the deletion of the vApps in a home.
func (d *vAppDeletion) run(ctx context.Context, in places, home vapp.Home) (phases.Result, error) {
	at, out, err := in.open(ctx, home)
	d.at = at
	if err != nil || out != phases.Done {
		return d.unlessNeverRequested(ctx, out, err)
	}
	if out, err := phases.Sequence(ctx, d.settle, d.removeNamed, d.removeRecorded); err != nil || out != phases.Done {
		return out, err
	}
	for _, name := range d.foreign {
		vapp.NotOwned(d.recorder, d.vcdCluster, name)
	}
	return phases.Done, nil
}

// unlessNeverRequested returns the problem that prevents queries for the vApp, unless its creation was never requested.
// A cluster with a wrong site, password or VDC can thus be deleted.
func (d *vAppDeletion) unlessNeverRequested(ctx context.Context, out phases.Result, err error) (phases.Result, error) {
	if err != nil {
		return out, err
	}
	requested, err := d.wasRequested(ctx)
	if err != nil || requested || len(d.records.ids()) > 0 {
		return out, err
	}
	d.unused = true
	return phases.Done, nil
}

// wasRequested reports whether the creation of VMs in the vApp was ever requested.
func (d *vAppDeletion) wasRequested(ctx context.Context) (bool, error) {
	if d.records.zone != "" || d.records.created() {
		return d.records.created(), nil
	}
	now := &infrav1.VCDCluster{} // A machine that is gone by now may have recorded it a moment ago.
	err := d.live.Get(ctx, client.ObjectKeyFromObject(d.vcdCluster), now)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting VCDCluster %s: %w", d.vcdCluster.Name, err)
	}
	return now.Spec.RecordedState.VAppCount > 0, nil
}

// settle records which delete tasks succeeded, and waits for the others unless the vApps are kept.
func (d *vAppDeletion) settle(ctx context.Context) (phases.Result, error) {
	for _, id := range d.records.ids() {
		t, ok := d.at.session.Task(d.taskKey(id))
		switch {
		case !ok:
			continue
		case vapp.Hangs(d.vcdCluster, d.now, t):
			continue
		case t.State == vcd.TaskRunning:
			d.running = phases.Wait(intervals.Task, infrav1.TaskRunningReason,
				"Waiting for VCD to delete vApp %s", id)
			continue
		case t.State == vcd.TaskSucceeded && !t.Undeploys():
			if err := d.recordDeleted(ctx, id); err != nil {
				return phases.Done, err
			}
		}
		d.at.session.Forget(d.taskKey(id))
		if t.State == vcd.TaskFailed {
			return problems.OfTask(t, "Deleting vApp "+id), nil
		}
	}
	if vapp.IsKept(d.vcdCluster) {
		return phases.Done, nil
	}
	return d.running, nil
}

// taskKey returns the key in the session of the task that deletes a vApp.
func (d *vAppDeletion) taskKey(id string) string { return string(d.vcdCluster.UID) + "/" + id }

// recordDeleted records that our delete task for a vApp succeeded, because the session reports this only once.
func (d *vAppDeletion) recordDeleted(ctx context.Context, id string) error {
	recorded := &d.vcdCluster.Spec.RecordedState
	if !slices.Contains(recorded.DeletedVAppIDs, id) {
		recorded.DeletedVAppIDs = append(recorded.DeletedVAppIDs, id)
	}
	if err := d.save(ctx); err != nil {
		return err
	}
	if len(d.records.ids()) == 1 {
		id = d.at.First
	}
	vAppDeleted(d.recorder, d.vcdCluster, id)
	return nil
}

// removeNamed takes the next step in the deletion of the vApps that still have their original names. There are several
// if the first ones were full.
func (d *vAppDeletion) removeNamed(ctx context.Context) (phases.Result, error) {
	for i := range d.records.count() {
		name := vapp.Numbered(d.at.First, i+1)
		vApp, err := d.at.session.FindVApp(ctx, d.at.vdc, name)
		switch {
		case errors.Is(err, vcd.ErrNotFound):
			continue
		case err != nil:
			out, err := problems.OfRead(err, "Reading vApp "+name)
			return d.unlessNeverRequested(ctx, out, err)
		}
		owns, err := marks.OwnsVApp(ctx, d.at.session, d.vcdCluster.Spec.InfraID, vApp)
		switch {
		case err != nil:
			return problems.OfRead(err, "Reading the metadata of vApp "+name)
		case !owns:
			d.foreign = append(d.foreign, name)
			continue
		}
		d.records.setMissingSince(nil)
		if out, err := d.removeOrKeep(ctx, vApp); err != nil || out != phases.Done {
			return out, err
		}
	}
	return phases.Done, nil
}

// removeRecorded takes the next step in the deletion of vApps that were renamed, whose URNs machines have recorded. It
// decides whether those that VCD does not show are gone.
func (d *vAppDeletion) removeRecorded(ctx context.Context) (phases.Result, error) {
	lost := absence.VApp{Name: d.at.First, VDC: d.at.vdc}
	for _, id := range d.records.ids() {
		if slices.Contains(d.left, id) || slices.Contains(d.records.gone(), id) {
			continue
		}
		vApp, err := d.at.session.VApp(ctx, id)
		switch {
		case absence.Invisible(err):
			lost.IDs = append(lost.IDs, id)
			continue
		case err != nil:
			return problems.OfRead(err, "Reading vApp "+id)
		}
		owns, err := marks.OwnsVApp(ctx, d.at.session, d.vcdCluster.Spec.InfraID, vApp)
		switch {
		case err != nil:
			return problems.OfRead(err, "Reading the metadata of vApp "+id)
		case !owns:
			d.left = append(d.left, id)
			continue
		}
		if out, err := d.removeOrKeep(ctx, vApp); err != nil || out != phases.Done {
			return out, err
		}
	}
	return d.proveGone(ctx, lost)
}

// proveGone decides whether vApps that were not found are gone, if they ever existed. Disks are deleted only if all
// vApps are proved gone. A missing record of a vApp is no proof.
func (d *vAppDeletion) proveGone(ctx context.Context, lost absence.VApp) (phases.Result, error) {
	if d.running != phases.Done {
		return d.running, nil
	}
	all := len(d.left) == 0 && d.records.areComplete()
	if len(lost.IDs) == 0 && len(d.records.gone()) == 0 && len(d.left) == 0 {
		if requested, err := d.wasRequested(ctx); err != nil || !requested {
			d.unused = err == nil
			return phases.Done, err
		}
	} else if len(lost.IDs) == 0 {
		d.gone = all
		return phases.Done, nil
	}
	since, out, err := lost.Gone(ctx, d.at.session, d.records.missingSince(), d.now)
	d.records.setMissingSince(since)
	d.gone = err == nil && out == phases.Done && all
	return out, err
}

// removeOrKeep takes the next step in the deletion of a vApp of the cluster. A kept vApp is deleted only if it is
// empty.
func (d *vAppDeletion) removeOrKeep(ctx context.Context, vApp vcd.VApp) (phases.Result, error) {
	c := d.vcdCluster
	if !vapp.IsKept(c) {
		return d.removeVApp(ctx, vApp)
	}
	out := phases.Stop(infrav1.VAppNotEmptyReason, "it holds %s", phases.Few(vapp.Names(vApp.VMs)))
	err := error(nil)
	if len(vApp.VMs) == 0 {
		out, err = d.removeVApp(ctx, vApp)
	}
	out, err = vapp.OrKeep(ctx, d.recorder, c, "VCDCluster", vApp.Name, out, err)
	if out == phases.Done && err == nil {
		d.left = append(d.left, vApp.ID)
	}
	return out, err
}

// removeVApp takes the next step in the deletion of a vApp of the cluster.
func (d *vAppDeletion) removeVApp(ctx context.Context, vApp vcd.VApp) (phases.Result, error) {
	switch {
	case vapp.Hangs(d.vcdCluster, d.now, vApp.Tasks...):
		return vapp.StillHeld(vApp.Name), nil
	case len(vApp.Tasks) > 0:
		return phases.Wait(intervals.Busy, infrav1.TaskRunningReason, "Waiting for another task on vApp %s",
			vApp.Name), nil
	}
	foreign, out, err := foreignVMs(ctx, d.at.session, vApp, d.vcdCluster.Spec.InfraID)
	switch {
	case err != nil || out != phases.Done:
		return out, err
	case len(foreign) > 0:
		return phases.Fail(intervals.Remedy, infrav1.VAppNotEmptyReason,
			"vApp %s contains VMs that block its deletion. They run or are suspended without a VCDMachine, belong to another owner, or have independent disks attached: move or delete %s", vApp.Name, phases.Few(foreign)), nil
	}
	if out, err := d.record(ctx, vApp.ID); err != nil || out != phases.Done {
		return out, err
	}
	task, err := d.at.session.DeleteVApp(ctx, vApp.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Wait(intervals.Busy, infrav1.VAppUnverifiedReason,
			"vApp %s no longer exists", vApp.Name), nil
	case err != nil:
		return problems.OfWrite(err, "Deleting vApp "+vApp.Name)
	}
	d.at.session.Follow(d.taskKey(vApp.ID), task, d.wake)
	return phases.Wait(intervals.Task, infrav1.TaskRunningReason, "Waiting for VCD to delete vApp %s", vApp.Name), nil
}

// record stores the URN of a vApp, which later proves that this vApp was deleted. Machines that were released a moment
// ago may have recorded others.
func (d *vAppDeletion) record(ctx context.Context, id string) (phases.Result, error) {
	c := d.vcdCluster
	if slices.Contains(d.records.ids(), id) {
		return phases.Done, nil
	}
	before := c.DeepCopy()
	d.records.add(id)
	change := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := d.client.Patch(ctx, c.DeepCopy(), change)
	if err == nil {
		return phases.Done, nil
	}
	c.Spec.RecordedState = before.Spec.RecordedState
	if apierrors.IsConflict(err) {
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason,
			"Waiting to record the deletion of the vApp, because another client is writing to the VCDCluster"), nil
	}
	return phases.Done, fmt.Errorf("recording vApp %s on VCDCluster %s: %w", id, c.Name, err)
}

// foreignVMs returns the names of the VMs that block the deletion of a vApp: those without the marker of the cluster,
// those that are not visible, those with independent disks, which outlive clusters, and those that run or are
// suspended. Leftovers of failed creations do not run. A VM that runs without a VCDMachine was adopted by another
// management cluster.
func foreignVMs(ctx context.Context, in *session.Session, vApp vcd.VApp, infraID string) ([]string, phases.Result, error) {
	var foreign []string
	for _, ref := range vApp.VMs {
		vm, err := in.VM(ctx, ref.ID)
		switch {
		case errors.Is(err, vcd.ErrForbidden):
		case errors.Is(err, vcd.ErrNotFound):
			return nil, phases.Wait(intervals.Busy, infrav1.EntityBusyReason,
				"VM %s left vApp %s while its VMs were read", ref.Name, vApp.Name), nil
		case err != nil:
			out, err := problems.OfRead(err, "Reading VM "+ref.Name)
			return nil, out, err
		}
		marker, ok := vcd.ParseMarker(vm.Description)
		if !ok || marker.Cluster != infraID || len(vm.IndependentDisks()) > 0 || isLive(vm.Status) {
			foreign = append(foreign, ref.Name)
		}
	}
	slices.Sort(foreign)
	return foreign, phases.Done, nil
}

// isLive reports whether a VM has a guest that runs, or that continues when the VM is resumed.
func isLive(status vcd.Status) bool {
	return status == vcd.StatusPoweredOn || status == vcd.StatusSuspended || status == vcd.StatusPartiallySuspended
}
