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
	if out, err := s.waitForMachines(ctx); err != nil || out != done {
		return out, err
	}
	if c.Spec.InfraID == "" || perMachine(c) {
		return done, nil // Nothing is created before the id is stored, and machines take vApps of their own with them.
	}
	opened, out, err := s.Identities.open(ctx, s.Sessions, c)
	if err != nil || out != done {
		return out, err
	}
	s.session = opened
	if out := s.settleDeletion(); out != done {
		return out, nil
	}
	vdc, out, err := vdcOf(ctx, s.session, c)
	if err != nil || out != done {
		return out, err
	}
	return s.deleteVApp(ctx, vdc, vAppName(c, clusterName(c, s.cluster)))
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
		out, err := s.proveGone(ctx, vdc, name)
		s.gone = err == nil && out == done
		return out, err
	case err != nil:
		return refusal(err, "Reading vApp "+name)
	}
	seen(s.vcdCluster)
	if marker, ok := vcd.ParseMarker(vApp.Description); !ok || marker.Cluster != s.vcdCluster.Spec.InfraID {
		vAppLeft(s.Recorder, s.vcdCluster, name)
		return done, nil
	}
	return s.removeVApp(ctx, vApp)
}

// proveGone decides whether a vApp that is not found is gone, if it was ever there.
func (s *clusterScope) proveGone(ctx context.Context, vdc vcd.VDC, name string) (outcome, error) {
	c := s.vcdCluster
	if s.ended {
		vAppDeleted(s.Recorder, c, name)
		delete(c.Annotations, infrav1.VAppCreatedAnnotation) // The proof is seen once only.
		return done, s.save(ctx)
	}
	if c.Annotations[infrav1.VAppCreatedAnnotation] == "" {
		now := &infrav1.VCDCluster{} // The last machine notes it, and goes at once.
		if err := s.Live.Get(ctx, client.ObjectKeyFromObject(c), now); client.IgnoreNotFound(err) != nil {
			return done, fmt.Errorf("getting VCDCluster %s: %w", c.Name, err)
		}
		if now.Annotations[infrav1.VAppCreatedAnnotation] == "" {
			return done, nil
		}
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
			"vApp %s holds VMs that run without a VCDMachine, are not this cluster's or have independent disks attached: move or delete %s, or annotate the VCDCluster with %s=true to leave the vApp as it is",
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
// that may not be seen, those with independent disks, which outlive clusters, and those that run. What a failed creation
// left behind does not run; a VM that runs without a VCDMachine here is one that another management cluster has taken over.
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
		if !ok || marker.Cluster != s.vcdCluster.Spec.InfraID || len(independentDisks(vm)) > 0 || vm.Status == vcd.StatusPoweredOn {
			foreign = append(foreign, ref.Name)
		}
	}
	slices.Sort(foreign)
	return foreign, done, nil
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
	if disks := s.disksThatStay(ctx); len(disks) > 0 {
		disksLeft(s.Recorder, c, disks)
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

// independentDisks returns the disks of vm that outlive it.
func independentDisks(vm vcd.VM) []vcd.Ref {
	var disks []vcd.Ref
	for _, d := range vm.Disks {
		if d.Independent != nil {
			disks = append(disks, *d.Independent)
		}
	}
	return disks
}

// few lists at most ten names.
func few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
