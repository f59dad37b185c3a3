package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteVApp makes sure that the vApp of the cluster is gone, if it is the cluster's.
func deleteVApp(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || vapp.PerMachine(c) {
		// Nothing is created before the id is stored, and machines take vApps of their own with them.
		return phases.Done, nil
	}
	d := &vAppDeletion{scope: s, name: vapp.Name(c, session.ClusterName(c, s.cluster))}
	out, err := s.open(ctx)
	if err == nil && out == phases.Done {
		d.vdc, out, err = session.VDCOf(ctx, s.session, c)
	}
	if err != nil || out != phases.Done {
		return d.unlessNeverAsked(ctx, out, err)
	}
	if out := d.settle(); out != phases.Done {
		return out, nil
	}
	return d.step(ctx)
}

// A vAppDeletion deletes the vApp of a cluster.
type vAppDeletion struct {
	*scope

	name  string
	vdc   vcd.VDC
	ended bool   // a task of ours deleted a vApp since the last pass
	owner string // its URN, if ended
}

// unlessNeverAsked passes on why VCD cannot be asked about the vApp, unless VCD was never asked to create it: a cluster
// with a wrong site, password or VDC can be deleted all the same.
func (d *vAppDeletion) unlessNeverAsked(ctx context.Context, out phases.Outcome, err error) (phases.Outcome, error) {
	if err != nil {
		return out, err
	}
	asked, err := d.wasAsked(ctx)
	if err != nil || asked || len(notes.VApps(d.vcdCluster)) > 0 {
		return out, err
	}
	return phases.Done, nil
}

// wasAsked reports whether VCD was asked to create VMs in the vApp.
func (d *vAppDeletion) wasAsked(ctx context.Context) (bool, error) {
	if d.vcdCluster.Annotations[infrav1.VAppCreatedAnnotation] != "" {
		return true, nil
	}
	now := &infrav1.VCDCluster{} // A machine notes it, and may be gone at once.
	if err := d.Live.Get(ctx, client.ObjectKeyFromObject(d.vcdCluster), now); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting VCDCluster %s: %w", d.vcdCluster.Name, err)
	}
	return now.Annotations[infrav1.VAppCreatedAnnotation] != "", nil
}

// settle waits for the task that was started last.
func (d *vAppDeletion) settle() phases.Outcome {
	key := string(d.vcdCluster.UID)
	t, ok := d.session.Task(key)
	switch {
	case !ok:
		return phases.Done
	case t.State == vcd.TaskRunning:
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete the vApp")
	}
	d.session.Forget(key)
	if t.State == vcd.TaskFailed {
		return session.TaskFailure(t, "Deleting the vApp")
	}
	d.ended, d.owner = !t.Undeploys(), t.Owner
	return phases.Done
}

// step takes the next step of deleting the vApp, if it is ours and so is all in it.
func (d *vAppDeletion) step(ctx context.Context) (phases.Outcome, error) {
	vApp, err := d.session.FindVApp(ctx, d.vdc, d.name)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		if out, err := d.deleteNumbered(ctx); err != nil || out != phases.Done {
			return out, err
		}
		hidden, out, err := d.deleteRenamed(ctx)
		if err != nil || out != phases.Done {
			return out, err
		}
		return d.proveGone(ctx, absence.VApp{Name: d.name, VDC: d.vdc, IDs: hidden, Kind: "VCDCluster"})
	case err != nil:
		out, err := session.Unread(err, "Reading vApp "+d.name)
		return d.unlessNeverAsked(ctx, out, err)
	}
	absence.Forget(d.vcdCluster)
	if d.owns(vApp) {
		return d.removeVApp(ctx, vApp)
	}
	if _, out, err := d.deleteRenamed(ctx); err != nil || out != phases.Done {
		return out, err
	}
	vapp.Left(d.Recorder, d.vcdCluster, d.name)
	return phases.Done, nil
}

// owns reports whether a vApp is the cluster'd.
func (d *vAppDeletion) owns(vApp vcd.VApp) bool {
	marker, ok := vcd.ParseMarker(vApp.Description)
	return ok && marker.Cluster == d.vcdCluster.Spec.InfraID
}

// deleteNumbered takes the next step of deleting the vApps that the cluster went on in when the first was full.
func (d *vAppDeletion) deleteNumbered(ctx context.Context) (phases.Outcome, error) {
	for n := vapp.Number(d.vcdCluster.Annotations[infrav1.VAppCreatedAnnotation]); n > 1; n-- {
		name := vapp.Numbered(d.name, n)
		vApp, err := d.session.FindVApp(ctx, d.vdc, name)
		switch {
		case errors.Is(err, vcd.ErrNotFound):
			continue
		case err != nil:
			return session.Unread(err, "Reading vApp "+name)
		case !d.owns(vApp):
			continue
		}
		if out, err := d.removeVApp(ctx, vApp); err != nil || out != phases.Done {
			return out, err
		}
	}
	return phases.Done, nil
}

// deleteRenamed takes the next step of deleting vApps of the cluster that have another name now: machines recorded
// their URNs. It returns those that VCD does not show.
func (d *vAppDeletion) deleteRenamed(ctx context.Context) (hidden []string, _ phases.Outcome, _ error) {
	for _, id := range notes.VApps(d.vcdCluster) {
		vApp, err := d.session.VApp(ctx, id)
		switch {
		case absence.Invisible(err):
			hidden = append(hidden, id)
			continue
		case err != nil:
			out, err := session.Unread(err, "Reading vApp "+id)
			return nil, out, err
		case !d.owns(vApp):
			continue
		}
		if out, err := d.removeVApp(ctx, vApp); err != nil || out != phases.Done {
			return nil, out, err
		}
	}
	return hidden, phases.Done, nil
}

// proveGone decides whether a vApp that is not found is gone, if there ever was one. The task that deleted it proves
// that of one. Disks are deleted only after proof: that no vApp is recorded is none.
func (d *vAppDeletion) proveGone(ctx context.Context, lost absence.VApp) (phases.Outcome, error) {
	c := d.vcdCluster
	other := func(id string) bool { return id != d.owner }
	if d.ended && !slices.ContainsFunc(lost.IDs, other) {
		d.gone = true
		notes.Set(c, infrav1.VAppGoneAnnotation, "true")
		vAppDeleted(d.Recorder, c, lost.Name)
		delete(c.Annotations, infrav1.VAppCreatedAnnotation) // the task is read only once
		delete(c.Annotations, infrav1.VAppsAnnotation)
		return phases.Done, d.save(ctx)
	}
	asked, err := d.wasAsked(ctx)
	switch {
	case err != nil:
		return phases.Done, err
	case !asked && len(lost.IDs) == 0:
		d.gone = c.Annotations[infrav1.VAppGoneAnnotation] == "true"
		return phases.Done, nil
	case vapp.IsKept(c):
		vapp.Kept(d.Recorder, c, lost.Name, nil)
		return phases.Done, nil
	}
	out, err := lost.Gone(ctx, d.session, c, d.now())
	d.gone = err == nil && out == phases.Done && len(lost.IDs) > 0
	return out, err
}

// removeVApp takes the next step of deleting a vApp of ours.
func (d *vAppDeletion) removeVApp(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	if len(vApp.Tasks) > 0 {
		return phases.Wait(session.BusyPoll, infrav1.TaskRunningReason, "Waiting for another task on vApp %s",
			vApp.Name), nil
	}
	foreign, out, err := d.foreignVMs(ctx, vApp)
	switch {
	case err != nil || out != phases.Done:
		return out, err
	case len(foreign) > 0 && vapp.IsKept(d.vcdCluster):
		vapp.Kept(d.Recorder, d.vcdCluster, vApp.Name, foreign)
		return phases.Done, nil
	case len(foreign) > 0:
		return phases.Fail(session.RemedyPoll, infrav1.VAppNotEmptyReason,
			"vApp %s holds VMs that run, or are suspended, without a VCDMachine, are not this cluster's or have "+
				"independent disks attached: move or delete %s, or annotate the VCDCluster with %s=true to leave the "+
				"vApp as it is",
			vApp.Name, phases.Few(foreign), infrav1.KeepVAppAnnotation), nil
	}
	task, err := d.session.DeleteVApp(ctx, vApp.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Wait(session.BusyPoll, infrav1.VAppUnverifiedReason,
			"vApp %s disappeared before it could be deleted", vApp.Name), nil
	case err != nil:
		return session.Refusal(err, "Deleting vApp "+vApp.Name)
	}
	d.session.Follow(string(d.vcdCluster.UID), task, d.wakeUps.ForObject(d.vcdCluster))
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
		if !ok || marker.Cluster != d.vcdCluster.Spec.InfraID || len(vm.IndependentDisks()) > 0 || lives(vm.Status) {
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
