package controllers

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// namesake finds another VCDCluster with the id of this one at the same place in VCD, as is when somebody copied a manifest, or restored
// a backup beside the original; nil if there is none. All that is marked with the id may be the other's then. One that was never ready,
// and is not the one that the id was made for, owns nothing; nor does one that is deleted, too.
func (s *clusterScope) namesake(ctx context.Context) (*infrav1.VCDCluster, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" {
		return nil, nil //nolint:nilnil // There is none, which is no error.
	}
	list := &infrav1.VCDClusterList{}
	if err := s.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID != c.UID && other.DeletionTimestamp.IsZero() && sharesID(c, other) {
			return other, nil
		}
	}
	return nil, nil //nolint:nilnil // There is none, which is no error.
}

// sharesID says whether what carries the id of c in VCD may be the other's.
func sharesID(c, other *infrav1.VCDCluster) bool {
	return other.Spec.InfraID == c.Spec.InfraID && other.Spec.Org == c.Spec.Org && normalSite(other.Spec.Site) == normalSite(c.Spec.Site) &&
		(string(other.UID) == c.Spec.InfraID || ptr.Deref(other.Status.Initialization.Provisioned, false))
}

// namesakeProblem keeps a cluster that was never ready from working under the id of another.
func (s *clusterScope) namesakeProblem(ctx context.Context) (outcome, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == string(c.UID) || ptr.Deref(c.Status.Initialization.Provisioned, false) {
		return done, nil
	}
	other, err := s.namesake(ctx)
	if err != nil || other == nil {
		return done, err
	}
	name := "another VCDCluster"
	if other.Namespace == c.Namespace {
		name = "VCDCluster " + other.Name
	}
	return fail(remedyPoll, infrav1.InfraIDInUseReason,
		"spec.infraID %s is that of %s, whose objects in VCD carry it: make this cluster anew without spec.infraID and without annotations of %s",
		c.Spec.InfraID, name, infrav1.GroupVersion.Group), nil
}

// sparing lets a phase of the deletion run when no machine is left, and leaves it out if it removes what carries the cluster's id while
// another cluster has the same. A vApp of a name of its own goes all the same if the cluster was ready once.
func sparing(run func(context.Context, *clusterScope) (outcome, error), isOwn func(c, other *infrav1.VCDCluster) bool) func(context.Context, *clusterScope) (outcome, error) {
	return func(ctx context.Context, s *clusterScope) (outcome, error) {
		if out, err := s.waitForMachines(ctx); err != nil || out != done {
			return out, err
		}
		other, err := s.namesake(ctx)
		if err != nil {
			return done, err
		}
		if other != nil && !isOwn(s.vcdCluster, other) {
			return done, nil
		}
		return run(ctx, s)
	}
}

// nothingOwn says that everything may be the other cluster's.
func nothingOwn(_, _ *infrav1.VCDCluster) bool { return false }

// ownVApp says whether the vApp of c is not that of its namesake.
func ownVApp(c, other *infrav1.VCDCluster) bool {
	return ptr.Deref(c.Status.Initialization.Provisioned, false) && vAppName(c, clusterName(c, nil)) != vAppName(other, clusterName(other, nil))
}

// hasTwin says whether another VCDMachine, which stays, has the same VM. Naming it is not enough, as anybody can who may create one, and as
// two sites may use one URN: the machine must have been found to be the VM's own, by the same mark.
func (s *machineScope) hasTwin(ctx context.Context) (bool, error) {
	if s.vcdMachine.Spec.ProviderID == "" {
		return false, nil
	}
	list := &infrav1.VCDMachineList{}
	if err := s.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing VCDMachines: %w", err)
	}
	for i := range list.Items {
		if isTwin(s.vcdMachine, &list.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

func isTwin(m, other *infrav1.VCDMachine) bool {
	return other.UID != m.UID && other.DeletionTimestamp.IsZero() && ptr.Deref(other.Status.Initialization.Provisioned, false) &&
		other.Spec.ProviderID == m.Spec.ProviderID && other.Annotations[infrav1.InstanceIDAnnotation] == m.Annotations[infrav1.InstanceIDAnnotation]
}
