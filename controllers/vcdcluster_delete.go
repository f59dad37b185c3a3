package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteClusterVApp makes sure that the vApp of the cluster is gone, if it is the cluster's.
func deleteClusterVApp(ctx context.Context, s *clusterScope) (outcome, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || perMachine(c) {
		return done, nil // Nothing is created before the id is stored, and machines take vApps of their own with them.
	}
	vdc, out, err := s.openForDeletion(ctx)
	if err != nil || out != done {
		return s.unlessNeverAsked(ctx, out, err)
	}
	if out := s.settleDeletion(); out != done {
		return out, nil
	}
	return s.deleteVApp(ctx, vdc, vAppName(c, clusterName(c, s.cluster)))
}

func (s *clusterScope) openForDeletion(ctx context.Context) (vcd.VDC, outcome, error) {
	opened, out, err := s.Identities.open(ctx, s.Sessions, s.vcdCluster)
	if err != nil || out != done {
		return vcd.VDC{}, out, err
	}
	s.session = opened
	return vdcOf(ctx, s.session, s.vcdCluster)
}

// unlessNeverAsked passes on why VCD cannot be asked about the vApp, unless VCD was never asked to make it: who gave a wrong site,
// password or VDC can delete the cluster all the same.
func (s *clusterScope) unlessNeverAsked(ctx context.Context, out outcome, err error) (outcome, error) {
	if err != nil {
		return out, err
	}
	asked, err := s.wasAsked(ctx)
	if err != nil || asked || len(knownVApps(s.vcdCluster)) > 0 {
		return out, err
	}
	return done, nil
}

// wasAsked says whether VCD was asked to create VMs in the vApp.
func (s *clusterScope) wasAsked(ctx context.Context) (bool, error) {
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
func (s *clusterScope) settleDeletion() outcome {
	key := string(s.vcdCluster.UID)
	t, ok := s.session.Task(key)
	switch {
	case !ok:
		return done
	case t.State == vcd.TaskRunning:
		return wait(taskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete the vApp")
	}
	s.session.Forget(key)
	if t.State == vcd.TaskFailed {
		return taskFailure(t, "Deleting the vApp")
	}
	s.ended = !strings.Contains(t.Operation, "ndeploy") // A vApp that was running is undeployed first.
	return done
}

// waitForMachines waits until no VCDMachine of the cluster remains.
func (s *clusterScope) waitForMachines(ctx context.Context) (outcome, error) {
	name := clusterName(s.vcdCluster, s.cluster)
	if name == "" {
		return done, nil
	}
	machines := &infrav1.VCDMachineList{}
	if err := s.Client.List(ctx, machines, client.InNamespace(s.vcdCluster.Namespace), ofCluster(name)); err != nil {
		return done, fmt.Errorf("listing VCDMachines: %w", err)
	}
	if len(machines.Items) == 0 {
		return done, nil
	}
	names := make([]string, 0, len(machines.Items))
	for _, m := range machines.Items {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return wait(taskPoll, infrav1.MachinesRemainReason, "Waiting for VCDMachines to be deleted: %s", few(names)), nil
}

// deleteVApp takes the next step of deleting the vApp of that name, if it is ours and so is all in it.
func (s *clusterScope) deleteVApp(ctx context.Context, vdc vcd.VDC, name string) (outcome, error) {
	vApp, err := s.session.FindVApp(ctx, vdc, name)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		if out, err := s.deleteRenamed(ctx); err != nil || out != done {
			return out, err
		}
		out, err := s.proveGone(ctx, vdc, name)
		s.gone = err == nil && out == done
		return out, err
	case err != nil:
		out, err := refusal(err, "Reading vApp "+name)
		return s.unlessNeverAsked(ctx, out, err)
	}
	seen(s.vcdCluster)
	if s.owns(vApp) {
		return s.removeVApp(ctx, vApp)
	}
	if out, err := s.deleteRenamed(ctx); err != nil || out != done {
		return out, err
	}
	vAppLeft(s.Recorder, s.vcdCluster, name)
	return done, nil
}

// owns says whether a vApp is the cluster's.
func (s *clusterScope) owns(vApp vcd.VApp) bool {
	marker, ok := vcd.ParseMarker(vApp.Description)
	return ok && marker.Cluster == s.vcdCluster.Spec.InfraID
}

// deleteRenamed takes the next step of deleting the vApps of the cluster that somebody renamed: machines left their URNs behind.
func (s *clusterScope) deleteRenamed(ctx context.Context) (outcome, error) {
	for _, id := range knownVApps(s.vcdCluster) {
		vApp, err := s.session.VApp(ctx, id)
		switch {
		case invisible(err):
			continue
		case err != nil:
			return refusal(err, "Reading vApp "+id)
		case !s.owns(vApp):
			continue
		}
		if out, err := s.removeVApp(ctx, vApp); err != nil || out != done {
			return out, err
		}
	}
	return done, nil
}

// knownVApps are the URNs of the vApps that VMs of a cluster were made in.
func knownVApps(c *infrav1.VCDCluster) []string {
	return urns(c.Annotations[infrav1.VAppsAnnotation])
}

// proveGone decides whether a vApp that is not found is gone, if it was ever there.
func (s *clusterScope) proveGone(ctx context.Context, vdc vcd.VDC, name string) (outcome, error) {
	c := s.vcdCluster
	if s.ended {
		vAppDeleted(s.Recorder, c, name)
		delete(c.Annotations, infrav1.VAppCreatedAnnotation) // The proof is seen once only.
		return done, s.save(ctx)
	}
	if asked, err := s.wasAsked(ctx); err != nil || !asked {
		return done, err
	}
	return vAppMissed(ctx, s.session, vdc, c, missing{what: "vApp " + name, finalizer: infrav1.ClusterFinalizer, now: s.now()})
}

// removeVApp takes the next step of deleting a vApp of ours.
func (s *clusterScope) removeVApp(ctx context.Context, vApp vcd.VApp) (outcome, error) {
	if len(vApp.Tasks) > 0 {
		return wait(busyPoll, infrav1.TaskRunningReason, "Waiting for another task on vApp %s", vApp.Name), nil
	}
	foreign, out, err := s.foreignVMs(ctx, vApp)
	switch {
	case err != nil || out != done:
		return out, err
	case len(foreign) > 0 && keepsVApp(s.vcdCluster):
		vAppKept(s.Recorder, s.vcdCluster, vApp.Name, foreign)
		return done, nil
	case len(foreign) > 0:
		return fail(remedyPoll, infrav1.VAppNotEmptyReason,
			"vApp %s holds VMs that run, or are suspended, without a VCDMachine, are not this cluster's or have independent disks attached: move or delete %s, or annotate the VCDCluster with %s=true to leave the vApp as it is",
			vApp.Name, few(foreign), infrav1.KeepVAppAnnotation), nil
	}
	task, err := s.session.DeleteVApp(ctx, vApp.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return wait(busyPoll, infrav1.VAppUnverifiedReason, "vApp %s went away while it was to be deleted", vApp.Name), nil
	case err != nil:
		return refusal(err, "Deleting vApp "+vApp.Name)
	}
	s.session.Follow(string(s.vcdCluster.UID), task, s.wakeUps.forObject(s.vcdCluster))
	return wait(taskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete vApp %s", vApp.Name), nil
}

// foreignVMs returns the names of the VMs for which a vApp must not be deleted: those without this cluster's marker, those
// that may not be seen, those with independent disks, which outlive clusters, and those that run or are suspended. What a failed
// creation left behind does neither; a VM that runs without a VCDMachine here is one that another management cluster has taken over.
func (s *clusterScope) foreignVMs(ctx context.Context, vApp vcd.VApp) ([]string, outcome, error) {
	var foreign []string
	for _, ref := range vApp.VMs {
		vm, err := s.session.VM(ctx, ref.ID)
		switch {
		case errors.Is(err, vcd.ErrForbidden):
		case errors.Is(err, vcd.ErrNotFound):
			return nil, wait(busyPoll, infrav1.EntityBusyReason, "VM %s left vApp %s while that was looked at", ref.Name, vApp.Name), nil
		case err != nil:
			out, err := refusal(err, "Reading VM "+ref.Name)
			return nil, out, err
		}
		marker, ok := vcd.ParseMarker(vm.Description)
		if !ok || marker.Cluster != s.vcdCluster.Spec.InfraID || len(vm.IndependentDisks()) > 0 || lives(vm.Status) {
			foreign = append(foreign, ref.Name)
		}
	}
	slices.Sort(foreign)
	return foreign, done, nil
}

// lives says whether a VM has a guest that runs, or that goes on when the VM is resumed.
func lives(status vcd.Status) bool {
	return status == vcd.StatusPoweredOn || status == vcd.StatusSuspended || status == vcd.StatusPartiallySuspended
}

// releaseCluster frees the claimed address and lets the API server delete the VCDCluster.
func releaseCluster(ctx context.Context, s *clusterScope) (outcome, error) {
	c := s.vcdCluster
	if name := clusterName(c, s.cluster); name != "" {
		key := claimKey(c, name)
		claim := &ipamv1.IPAddressClaim{}
		err := s.Client.Get(ctx, key, claim)
		if err == nil && metav1.IsControlledBy(claim, c) && claim.DeletionTimestamp.IsZero() {
			err = s.Client.Delete(ctx, claim)
		}
		if client.IgnoreNotFound(err) != nil {
			return done, fmt.Errorf("deleting IPAddressClaim %s: %w", key, err)
		}
	}
	other, err := s.namesake(ctx)
	switch {
	case err != nil:
		return done, err
	case other != nil:
		leftToNamesake(s.Recorder, c)
	default:
		if disks := s.disksThatStay(ctx); len(disks) > 0 {
			disksLeft(s.Recorder, c, disks)
		}
	}
	s.Drivers.forget(s.cluster)
	s.teardowns.forget(c.UID)
	controllerutil.RemoveFinalizer(c, infrav1.ClusterFinalizer)
	return done, nil
}

// vdcOf returns the VDC of a cluster, by the id found earlier if there is one.
func vdcOf(ctx context.Context, p placements, c *infrav1.VCDCluster) (vcd.VDC, outcome, error) {
	if found := c.Status.OVDC; found != nil {
		return vcd.VDC{Ref: vcd.Ref{ID: found.ID, Name: found.Name}}, done, nil
	}
	vdc, err := p.FindVDC(ctx, c.Spec.OVDC)
	if err != nil {
		out, err := lookupProblem(err, infrav1.VDCNotFoundReason, "nothing can be proved to be gone without it; correct spec.ovdc of the VCDCluster, or give its user access to the VDC")
		return vcd.VDC{}, out, err
	}
	return vdc, done, nil
}

func (s *clusterScope) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// clusterName returns the name of the Cluster of c, also after it is gone.
func clusterName(c *infrav1.VCDCluster, cluster *clusterv1.Cluster) string {
	if cluster != nil {
		return cluster.Name
	}
	if name := c.Labels[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	for _, owner := range c.OwnerReferences {
		if owner.Kind == "Cluster" {
			return owner.Name
		}
	}
	return ""
}

// few lists at most ten names.
func few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
