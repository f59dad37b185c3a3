package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteClusterVApp makes sure that the vApp of the cluster is gone, if it is the cluster's.
func deleteClusterVApp(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || vapp.PerMachine(c) {
		return phases.Done, nil // Nothing is created before the id is stored, and machines take vApps of their own with them.
	}
	vdc, out, err := s.openForDeletion(ctx)
	if err != nil || out != phases.Done {
		return s.unlessNeverAsked(ctx, out, err)
	}
	if out := s.settleDeletion(); out != phases.Done {
		return out, nil
	}
	return s.deleteVApp(ctx, vdc, vapp.Name(c, session.ClusterName(c, s.cluster)))
}

func (s *scope) openForDeletion(ctx context.Context) (vcd.VDC, phases.Outcome, error) {
	opened, out, err := s.Identities.Open(ctx, s.Sessions, s.vcdCluster)
	if err != nil || out != phases.Done {
		return vcd.VDC{}, out, err
	}
	s.session = opened
	return session.VDCOf(ctx, s.session, s.vcdCluster)
}

// unlessNeverAsked passes on why VCD cannot be asked about the vApp, unless VCD was never asked to make it: who gave a wrong site,
// password or VDC can delete the cluster all the same.
func (s *scope) unlessNeverAsked(ctx context.Context, out phases.Outcome, err error) (phases.Outcome, error) {
	if err != nil {
		return out, err
	}
	asked, err := s.wasAsked(ctx)
	if err != nil || asked || len(notes.VApps(s.vcdCluster)) > 0 {
		return out, err
	}
	return phases.Done, nil
}

// wasAsked says whether VCD was asked to create VMs in the vApp.
func (s *scope) wasAsked(ctx context.Context) (bool, error) {
	if s.vcdCluster.Annotations[infrav1.VAppCreatedAnnotation] != "" {
		return true, nil
	}
	now := &infrav1.VCDCluster{} // A machine notes it, and may be gone at once.
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.vcdCluster), now); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting VCDCluster %s: %w", s.vcdCluster.Name, err)
	}
	return now.Annotations[infrav1.VAppCreatedAnnotation] != "", nil
}

// settleDeletion waits for the task that was started last.
func (s *scope) settleDeletion() phases.Outcome {
	key := string(s.vcdCluster.UID)
	t, ok := s.session.Task(key)
	switch {
	case !ok:
		return phases.Done
	case t.State == vcd.TaskRunning:
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete the vApp")
	}
	s.session.Forget(key)
	if t.State == vcd.TaskFailed {
		return session.TaskFailure(t, "Deleting the vApp")
	}
	s.ended = !t.Undeploys()
	return phases.Done
}

// waitForMachines waits until no VCDMachine of the cluster remains.
func (s *scope) waitForMachines(ctx context.Context) (phases.Outcome, error) {
	name := session.ClusterName(s.vcdCluster, s.cluster)
	if name == "" {
		return phases.Done, nil
	}
	machines := &infrav1.VCDMachineList{}
	if err := s.Client.List(ctx, machines, client.InNamespace(s.vcdCluster.Namespace), session.OfCluster(name)); err != nil {
		return phases.Done, fmt.Errorf("listing VCDMachines: %w", err)
	}
	if len(machines.Items) == 0 {
		return phases.Done, nil
	}
	names := make([]string, 0, len(machines.Items))
	for _, m := range machines.Items {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return phases.Wait(session.TaskPoll, infrav1.MachinesRemainReason, "Waiting for VCDMachines to be deleted: %s", phases.Few(names)), nil
}

// deleteVApp takes the next step of deleting the vApp of that name, if it is ours and so is all in it.
func (s *scope) deleteVApp(ctx context.Context, vdc vcd.VDC, name string) (phases.Outcome, error) {
	vApp, err := s.session.FindVApp(ctx, vdc, name)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		hidden, out, err := s.deleteRenamed(ctx)
		if err != nil || out != phases.Done {
			return out, err
		}
		return s.proveGone(ctx, absence.VApp{Name: name, VDC: vdc, IDs: hidden, Kind: "VCDCluster"})
	case err != nil:
		out, err := session.Refusal(err, "Reading vApp "+name)
		return s.unlessNeverAsked(ctx, out, err)
	}
	absence.Forget(s.vcdCluster)
	if s.owns(vApp) {
		return s.removeVApp(ctx, vApp)
	}
	if _, out, err := s.deleteRenamed(ctx); err != nil || out != phases.Done {
		return out, err
	}
	vapp.Left(s.Recorder, s.vcdCluster, name)
	return phases.Done, nil
}

// owns says whether a vApp is the cluster's.
func (s *scope) owns(vApp vcd.VApp) bool {
	marker, ok := vcd.ParseMarker(vApp.Description)
	return ok && marker.Cluster == s.vcdCluster.Spec.InfraID
}

// deleteRenamed takes the next step of deleting vApps of the cluster that have another name now: machines recorded their URNs. It
// returns those that VCD does not show.
func (s *scope) deleteRenamed(ctx context.Context) (hidden []string, _ phases.Outcome, _ error) {
	for _, id := range notes.VApps(s.vcdCluster) {
		vApp, err := s.session.VApp(ctx, id)
		switch {
		case absence.Invisible(err):
			hidden = append(hidden, id)
			continue
		case err != nil:
			out, err := session.Refusal(err, "Reading vApp "+id)
			return nil, out, err
		case !s.owns(vApp):
			continue
		}
		if out, err := s.removeVApp(ctx, vApp); err != nil || out != phases.Done {
			return nil, out, err
		}
	}
	return hidden, phases.Done, nil
}

// proveGone decides whether a vApp that is not found is gone, if there ever was one. The task that deleted it proves that of one.
func (s *scope) proveGone(ctx context.Context, lost absence.VApp) (phases.Outcome, error) {
	c := s.vcdCluster
	if s.ended && len(lost.IDs) <= 1 {
		s.gone = true
		vAppDeleted(s.Recorder, c, lost.Name)
		delete(c.Annotations, infrav1.VAppCreatedAnnotation) // the task is read only once
		delete(c.Annotations, infrav1.VAppsAnnotation)
		return phases.Done, s.save(ctx)
	}
	asked, err := s.wasAsked(ctx)
	switch {
	case err != nil:
		return phases.Done, err
	case !asked && len(lost.IDs) == 0:
		s.gone = true
		return phases.Done, nil
	case vapp.IsKept(c):
		vapp.Kept(s.Recorder, c, lost.Name, nil)
		return phases.Done, nil
	}
	out, err := lost.Gone(ctx, s.session, c, s.now())
	s.gone = err == nil && out == phases.Done
	return out, err
}

// removeVApp takes the next step of deleting a vApp of ours.
func (s *scope) removeVApp(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	if len(vApp.Tasks) > 0 {
		return phases.Wait(session.BusyPoll, infrav1.TaskRunningReason, "Waiting for another task on vApp %s", vApp.Name), nil
	}
	foreign, out, err := s.foreignVMs(ctx, vApp)
	switch {
	case err != nil || out != phases.Done:
		return out, err
	case len(foreign) > 0 && vapp.IsKept(s.vcdCluster):
		vapp.Kept(s.Recorder, s.vcdCluster, vApp.Name, foreign)
		return phases.Done, nil
	case len(foreign) > 0:
		return phases.Fail(session.RemedyPoll, infrav1.VAppNotEmptyReason,
			"vApp %s holds VMs that run, or are suspended, without a VCDMachine, are not this cluster's or have independent disks attached: move or delete %s, or annotate the VCDCluster with %s=true to leave the vApp as it is",
			vApp.Name, phases.Few(foreign), infrav1.KeepVAppAnnotation), nil
	}
	task, err := s.session.DeleteVApp(ctx, vApp.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Wait(session.BusyPoll, infrav1.VAppUnverifiedReason, "vApp %s went away while it was to be deleted", vApp.Name), nil
	case err != nil:
		return session.Refusal(err, "Deleting vApp "+vApp.Name)
	}
	s.session.Follow(string(s.vcdCluster.UID), task, s.wakeUps.ForObject(s.vcdCluster))
	return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete vApp %s", vApp.Name), nil
}

// foreignVMs returns the names of the VMs for which a vApp must not be deleted: those without this cluster's marker, those
// that may not be seen, those with independent disks, which outlive clusters, and those that run or are suspended. What a failed
// creation left behind does neither; a VM that runs without a VCDMachine here is one that another management cluster has taken over.
func (s *scope) foreignVMs(ctx context.Context, vApp vcd.VApp) ([]string, phases.Outcome, error) {
	var foreign []string
	for _, ref := range vApp.VMs {
		vm, err := s.session.VM(ctx, ref.ID)
		switch {
		case errors.Is(err, vcd.ErrForbidden):
		case errors.Is(err, vcd.ErrNotFound):
			return nil, phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "VM %s left vApp %s while that was looked at", ref.Name, vApp.Name), nil
		case err != nil:
			out, err := session.Refusal(err, "Reading VM "+ref.Name)
			return nil, out, err
		}
		marker, ok := vcd.ParseMarker(vm.Description)
		if !ok || marker.Cluster != s.vcdCluster.Spec.InfraID || len(vm.IndependentDisks()) > 0 || lives(vm.Status) {
			foreign = append(foreign, ref.Name)
		}
	}
	slices.Sort(foreign)
	return foreign, phases.Done, nil
}

// lives says whether a VM has a guest that runs, or that goes on when the VM is resumed.
func lives(status vcd.Status) bool {
	return status == vcd.StatusPoweredOn || status == vcd.StatusSuspended || status == vcd.StatusPartiallySuspended
}

// releaseCluster frees the claimed address and lets the API server delete the VCDCluster.
func releaseCluster(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	if name := session.ClusterName(c, s.cluster); name != "" {
		key := claimKey(c, name)
		claim := &ipamv1.IPAddressClaim{}
		err := s.Client.Get(ctx, key, claim)
		if err == nil && metav1.IsControlledBy(claim, c) && claim.DeletionTimestamp.IsZero() {
			err = s.Client.Delete(ctx, claim)
		}
		if client.IgnoreNotFound(err) != nil {
			return phases.Done, fmt.Errorf("deleting IPAddressClaim %s: %w", key, err)
		}
	}
	other, err := s.namesake(ctx)
	switch {
	case err != nil:
		return phases.Done, err
	case other != nil:
		leftToNamesake(s.Recorder, c)
	default:
		if disks := s.disksThatStay(ctx); len(disks) > 0 {
			disksLeft(s.Recorder, c, disks)
		}
	}
	s.Drivers.Forget(s.cluster)
	s.teardowns.forget(c.UID)
	controllerutil.RemoveFinalizer(c, infrav1.ClusterFinalizer)
	return phases.Done, nil
}

func (s *scope) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}
