package cluster

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// namesake finds another VCDCluster with the id of this one at the same place in VCD, as is when somebody copied a manifest, or restored
// a backup beside the original; nil if there is none. All that is marked with the id may be the other's then. One that was never ready,
// and is not the one that the id was made for, owns nothing; nor does one that is deleted, too.
func (s *scope) namesake(ctx context.Context) (*infrav1.VCDCluster, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" {
		return nil, nil
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
	return nil, nil
}

// sharesID says whether what carries the id of c in VCD may be the other's.
func sharesID(c, other *infrav1.VCDCluster) bool {
	return other.Spec.InfraID == c.Spec.InfraID && other.Spec.Org == c.Spec.Org && session.NormalSite(other.Spec.Site) == session.NormalSite(c.Spec.Site) &&
		(string(other.UID) == c.Spec.InfraID || ptr.Deref(other.Status.Initialization.Provisioned, false))
}

// namesakeProblem keeps a cluster that was never ready from working under the id of another.
func (s *scope) namesakeProblem(ctx context.Context) (phases.Outcome, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == string(c.UID) || ptr.Deref(c.Status.Initialization.Provisioned, false) {
		return phases.Done, nil
	}
	other, err := s.namesake(ctx)
	if err != nil || other == nil {
		return phases.Done, err
	}
	name := "another VCDCluster"
	if other.Namespace == c.Namespace {
		name = "VCDCluster " + other.Name
	}
	return phases.Fail(session.RemedyPoll, infrav1.InfraIDInUseReason,
		"spec.infraID %s is that of %s, whose objects in VCD carry it: make this cluster anew without spec.infraID and without annotations of %s",
		c.Spec.InfraID, name, infrav1.GroupVersion.Group), nil
}

// sparing lets a phase of the deletion run when no machine is left, and leaves it out if it removes what carries the cluster's id while
// another cluster has the same. A vApp of a name of its own goes all the same if the cluster was ready once.
func sparing(run func(context.Context, *scope) (phases.Outcome, error), isOwn func(c, other *infrav1.VCDCluster) bool) func(context.Context, *scope) (phases.Outcome, error) {
	return func(ctx context.Context, s *scope) (phases.Outcome, error) {
		if out, err := s.waitForMachines(ctx); err != nil || out != phases.Done {
			return out, err
		}
		other, err := s.namesake(ctx)
		if err != nil {
			return phases.Done, err
		}
		if other != nil && !isOwn(s.vcdCluster, other) {
			return phases.Done, nil
		}
		return run(ctx, s)
	}
}

// nothingOwn says that everything may be the other cluster's.
func nothingOwn(_, _ *infrav1.VCDCluster) bool { return false }

// ownVApp says whether the vApp of c is not that of its namesake.
func ownVApp(c, other *infrav1.VCDCluster) bool {
	return ptr.Deref(c.Status.Initialization.Provisioned, false) && vapp.Name(c, session.ClusterName(c, nil)) != vapp.Name(other, session.ClusterName(other, nil))
}
