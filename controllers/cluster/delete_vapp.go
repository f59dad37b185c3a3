// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteVApp makes sure that the vApps of the cluster are gone, as far as they are the cluster's and no person keeps
// them. A zone that cannot be asked does not hold the others up.
func deleteVApp(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || vapp.PerMachine(c) {
		// Nothing is created before the id is stored, and machines take vApps of their own with them.
		return phases.Done, nil
	}
	homes := homesOf(s.vcdCluster, session.ClusterName(s.vcdCluster, s.cluster))
	s.gone = len(homes) > 0
	var all first
	for _, home := range homes {
		d := &vAppDeletion{scope: s, where: where{Home: home}}
		out, err := d.run(ctx)
		all.add(vapp.OrKeep(ctx, s.reconciler.Recorder, c, "VCDCluster", home.First, out, err))
		s.gone = s.gone && (d.gone || d.unused && len(homes) > 1)
	}
	return all.out, all.err
}

// A vAppDeletion deletes the vApps of a cluster in one VDC.
type vAppDeletion struct {
	scope *scope
	where

	foreign []string       // names of vApps that are another owner's
	left    []string       // URNs of vApps that stay
	running phases.Outcome // a deletion that has not ended
	gone    bool           // all are proved gone
	unused  bool           // VCD was never asked to create one
}

func (d *vAppDeletion) run(ctx context.Context) (out phases.Outcome, err error) {
	d.where, out, err = d.scope.openIn(ctx, d.Home)
	if err != nil || out != phases.Done {
		return d.unlessNeverAsked(ctx, out, err)
	}
	for _, step := range []func(context.Context) (phases.Outcome, error){d.settle, d.removeNamed, d.removeRecorded} {
		if out, err := step(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	for _, name := range d.foreign {
		vapp.Left(d.scope.reconciler.Recorder, d.scope.vcdCluster, name)
	}
	return phases.Done, nil
}

// settle waits for the tasks that delete vApps, unless a person leaves these, and stores which were deleted.
func (d *vAppDeletion) settle(ctx context.Context) (phases.Outcome, error) {
	for _, id := range d.recorded() {
		t, ok := d.session.Task(d.key(id))
		switch {
		case !ok:
			continue
		case vapp.Hangs(d.scope.vcdCluster, d.scope.now(), t):
			continue
		case t.State == vcd.TaskRunning:
			d.running = phases.Wait(session.TaskPoll, infrav1.TaskRunningReason,
				"Waiting for VCD to delete vApp %s", id)
			continue
		case t.State == vcd.TaskSucceeded && !t.Undeploys():
			if err := d.noteGone(ctx, id); err != nil {
				return phases.Done, err
			}
		}
		d.session.Forget(d.key(id))
		if t.State == vcd.TaskFailed {
			return session.TaskFailure(t, "Deleting vApp "+id), nil
		}
	}
	if vapp.IsKept(d.scope.vcdCluster) {
		return phases.Done, nil
	}
	return d.running, nil
}

// removeNamed takes the next step of deleting the vApps that have the names by which they were created: the cluster
// goes on in another one when one is full.
func (d *vAppDeletion) removeNamed(ctx context.Context) (phases.Outcome, error) {
	for i := range d.count() {
		name := vapp.Numbered(d.First, i+1)
		vApp, err := d.session.FindVApp(ctx, d.vdc, name)
		switch {
		case errors.Is(err, vcd.ErrNotFound):
			continue
		case err != nil:
			out, err := session.Unread(err, "Reading vApp "+name)
			return d.unlessNeverAsked(ctx, out, err)
		case !d.owns(vApp):
			d.foreign = append(d.foreign, name)
			continue
		}
		d.lost().Forget(d.scope.vcdCluster)
		if out, err := d.removeOrKeep(ctx, vApp); err != nil || out != phases.Done {
			return out, err
		}
	}
	return phases.Done, nil
}

// removeRecorded takes the next step of deleting vApps that have another name now: machines recorded their URNs. Of
// those that VCD does not show it decides whether they are gone.
func (d *vAppDeletion) removeRecorded(ctx context.Context) (phases.Outcome, error) {
	lost := d.lost()
	for _, id := range d.recorded() {
		if slices.Contains(d.left, id) || slices.Contains(d.proved(), id) {
			continue
		}
		vApp, err := d.session.VApp(ctx, id)
		switch {
		case absence.Invisible(err):
			lost.IDs = append(lost.IDs, id)
			continue
		case err != nil:
			return session.Unread(err, "Reading vApp "+id)
		case !d.owns(vApp):
			d.left = append(d.left, id)
			continue
		}
		if out, err := d.removeOrKeep(ctx, vApp); err != nil || out != phases.Done {
			return out, err
		}
	}
	return d.proveGone(ctx, lost)
}

// proveGone decides whether vApps that are not found are gone, if there ever were any. Disks are deleted only if all
// are proved gone: that no vApp is recorded is no proof.
func (d *vAppDeletion) proveGone(ctx context.Context, lost absence.VApp) (phases.Outcome, error) {
	if d.running != phases.Done {
		return d.running, nil
	}
	if len(lost.IDs) == 0 && len(d.proved()) == 0 && len(d.left) == 0 {
		if asked, err := d.wasAsked(ctx); err != nil || !asked {
			d.unused = err == nil
			return phases.Done, err
		}
	} else if len(lost.IDs) == 0 {
		d.gone = d.allRecorded()
		return phases.Done, nil
	}
	out, err := lost.Gone(ctx, d.session, d.scope.vcdCluster, d.scope.now())
	d.gone = err == nil && out == phases.Done && d.allRecorded()
	return out, err
}

// removeOrKeep takes the next step of deleting a vApp of ours. One that is kept goes only if it is empty.
func (d *vAppDeletion) removeOrKeep(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	c := d.scope.vcdCluster
	if !vapp.IsKept(c) {
		return d.removeVApp(ctx, vApp)
	}
	out := phases.Stop(infrav1.VAppNotEmptyReason, "it holds %s", phases.Few(vapp.Names(vApp.VMs)))
	err := error(nil)
	if len(vApp.VMs) == 0 {
		out, err = d.removeVApp(ctx, vApp)
	}
	out, err = vapp.OrKeep(ctx, d.scope.reconciler.Recorder, c, "VCDCluster", vApp.Name, out, err)
	if out == phases.Done && err == nil {
		d.left = append(d.left, vApp.ID)
	}
	return out, err
}

// removeVApp takes the next step of deleting a vApp of ours.
func (d *vAppDeletion) removeVApp(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	switch {
	case vapp.Hangs(d.scope.vcdCluster, d.scope.now(), vApp.Tasks...):
		return vapp.StillHeld(vApp.Name), nil
	case len(vApp.Tasks) > 0:
		return phases.Wait(session.BusyPoll, infrav1.TaskRunningReason, "Waiting for another task on vApp %s",
			vApp.Name), nil
	}
	foreign, out, err := d.foreignVMs(ctx, vApp)
	switch {
	case err != nil || out != phases.Done:
		return out, err
	case len(foreign) > 0:
		return phases.Fail(session.RemedyPoll, infrav1.VAppNotEmptyReason,
			"vApp %s holds VMs that run, or are suspended, without a VCDMachine, are not this cluster's or have "+
				"independent disks attached: move or delete %s", vApp.Name, phases.Few(foreign)), nil
	}
	if out, err := d.record(ctx, vApp.ID); err != nil || out != phases.Done {
		return out, err
	}
	task, err := d.session.DeleteVApp(ctx, vApp.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Wait(session.BusyPoll, infrav1.VAppUnverifiedReason,
			"vApp %s disappeared before it could be deleted", vApp.Name), nil
	case err != nil:
		return session.Refusal(err, "Deleting vApp "+vApp.Name)
	}
	d.session.Follow(d.key(vApp.ID), task, d.scope.reconciler.wakeUps.ForObject(d.scope.vcdCluster))
	return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete vApp %s", vApp.Name), nil
}

// foreignVMs returns the names of the VMs for which a vApp must not be deleted: those without this cluster's marker,
// those that are not shown, those with independent disks, which outlive clusters, and those that run or are suspended.
// Leftovers of failed creations do neither; a VM that runs without a VCDMachine here was adopted by another management
// cluster.
func (d *vAppDeletion) foreignVMs(ctx context.Context, vApp vcd.VApp) ([]string, phases.Outcome, error) {
	var foreign []string
	for _, ref := range vApp.VMs {
		vm, err := d.session.VM(ctx, ref.ID)
		switch {
		case errors.Is(err, vcd.ErrForbidden):
		case errors.Is(err, vcd.ErrNotFound):
			return nil, phases.Wait(session.BusyPoll, infrav1.EntityBusyReason,
				"VM %s left vApp %s while its VMs were read", ref.Name, vApp.Name), nil
		case err != nil:
			out, err := session.Unread(err, "Reading VM "+ref.Name)
			return nil, out, err
		}
		marker, ok := vcd.ParseMarker(vm.Description)
		if !ok || marker.Cluster != d.scope.vcdCluster.Spec.InfraID || len(vm.IndependentDisks()) > 0 || lives(vm.Status) {
			foreign = append(foreign, ref.Name)
		}
	}
	slices.Sort(foreign)
	return foreign, phases.Done, nil
}

// lives reports whether a VM has a guest that runs, or that continues when the VM is resumed.
func lives(status vcd.Status) bool {
	return status == vcd.StatusPoweredOn || status == vcd.StatusSuspended || status == vcd.StatusPartiallySuspended
}

// owns reports whether a vApp is the cluster's.
func (d *vAppDeletion) owns(vApp vcd.VApp) bool {
	marker, ok := vcd.ParseMarker(vApp.Description)
	return ok && marker.Cluster == d.scope.vcdCluster.Spec.InfraID
}

// key names the task that deletes a vApp in the session.
func (d *vAppDeletion) key(id string) string { return string(d.scope.vcdCluster.UID) + "/" + id }

// lost is the vApp that is not found.
func (d *vAppDeletion) lost() absence.VApp {
	return absence.VApp{Name: d.First, VDC: d.vdc, Zone: d.Zone}
}

// unlessNeverAsked passes on why VCD cannot be asked about the vApp, unless VCD was never asked to create it: a cluster
// with a wrong site, password or VDC can be deleted all the same.
func (d *vAppDeletion) unlessNeverAsked(ctx context.Context, out phases.Outcome, err error) (phases.Outcome, error) {
	if err != nil {
		return out, err
	}
	asked, err := d.wasAsked(ctx)
	if err != nil || asked || len(d.recorded()) > 0 {
		return out, err
	}
	d.unused = true
	return phases.Done, nil
}

// wasAsked reports whether VCD was asked to create VMs in the vApp.
func (d *vAppDeletion) wasAsked(ctx context.Context) (bool, error) {
	switch {
	case d.Zone != "":
		return d.Count > 0, nil
	case d.scope.vcdCluster.Annotations[infrav1.VAppCreatedAnnotation] != "":
		return true, nil
	}
	now := &infrav1.VCDCluster{} // A machine notes it, and may be gone at once.
	if err := d.scope.reconciler.Live.Get(ctx, client.ObjectKeyFromObject(d.scope.vcdCluster), now); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting VCDCluster %s: %w", d.scope.vcdCluster.Name, err)
	}
	return now.Annotations[infrav1.VAppCreatedAnnotation] != "", nil
}

// recorded are the URNs of vApps that VMs of the cluster were in.
func (d *vAppDeletion) recorded() []string {
	if d.Zone == "" {
		return notes.VApps(d.scope.vcdCluster)
	}
	return d.inZone().IDs
}

// inZone returns what is recorded of the zone now.
func (d *vAppDeletion) inZone() vapp.Home {
	return vapp.HomeIn(d.scope.vcdCluster, session.ClusterName(d.scope.vcdCluster, d.scope.cluster), d.Zone)
}

// count is how many vApps VCD was asked to create VMs in, or 1 if it may not have been asked.
func (d *vAppDeletion) count() int {
	if d.Zone == "" {
		return vapp.Number(d.scope.vcdCluster.Annotations[infrav1.VAppCreatedAnnotation])
	}
	return d.Count
}

// proved are the vApps that our own tasks deleted.
func (d *vAppDeletion) proved() []string {
	known := d.recorded()
	return slices.DeleteFunc(notes.URNs(d.scope.vcdCluster.Annotations[infrav1.VAppGoneAnnotation]),
		func(id string) bool { return !slices.Contains(known, id) })
}

// allRecorded reports whether every vApp that was ever used is recorded, and none of them stays.
func (d *vAppDeletion) allRecorded() bool {
	known := len(d.recorded())
	return len(d.left) == 0 && known > 0 && known >= d.count()
}

// noteGone stores that our task deleted a vApp: VCD shows that once.
func (d *vAppDeletion) noteGone(ctx context.Context, id string) error {
	c := d.scope.vcdCluster
	notes.AddURN(c, infrav1.VAppGoneAnnotation, id)
	if err := d.scope.save(ctx); err != nil {
		return err
	}
	if len(d.recorded()) == 1 {
		id = d.First
	}
	vAppDeleted(d.scope.reconciler.Recorder, c, id)
	return nil
}

// record records the URN of a vApp, which proves later that it is the one that was deleted. Machines that were released
// a moment ago may have recorded others.
func (d *vAppDeletion) record(ctx context.Context, id string) (phases.Outcome, error) {
	c := d.scope.vcdCluster
	before := d.scope.vcdCluster.DeepCopy()
	if slices.Contains(d.recorded(), id) {
		return phases.Done, nil
	}
	if d.Zone == "" {
		notes.AddURN(c, infrav1.VAppsAnnotation, id)
	} else {
		home := d.inZone()
		home.IDs = append(home.IDs, id)
		key, value := home.Note()
		notes.Set(c, key, value)
	}
	err := d.scope.reconciler.Client.Patch(ctx, c.DeepCopy(), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		return phases.Done, nil
	}
	c.Annotations = before.Annotations
	if apierrors.IsConflict(err) {
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason,
			"Waiting to record which vApp is deleted, while others write to the VCDCluster"), nil
	}
	return phases.Done, fmt.Errorf("recording vApp %s on VCDCluster %s: %w", id, c.Name, err)
}
