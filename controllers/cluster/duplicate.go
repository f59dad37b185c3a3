package cluster

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// duplicates returns the other VCDClusters with the id of this one in the same organization, as are after a manifest
// was copied or a backup was restored beside the original. All that is marked with the id may be theirs then. One that
// was never ready, and is not the one that the id was created for, owns nothing; nor does one that is deleted, too.
func (s *scope) duplicates(ctx context.Context) ([]*infrav1.VCDCluster, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" {
		return nil, nil
	}
	list := &infrav1.VCDClusterList{}
	if err := s.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	var all []*infrav1.VCDCluster
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID != c.UID && other.DeletionTimestamp.IsZero() && sharesID(c, other) {
			all = append(all, other)
		}
	}
	return all, nil
}

// sharesID reports whether what carries the id of c in VCD may be the other's: the id was made for that, or it was
// complete once. What a copied manifest says of the latter proves nothing against the cluster that the id was made for.
func sharesID(c, other *infrav1.VCDCluster) bool {
	return other.Spec.InfraID == c.Spec.InfraID && other.Spec.Org == c.Spec.Org &&
		session.NormalSite(other.Spec.Site) == session.NormalSite(c.Spec.Site) &&
		(isOriginal(other) || ranHere(other) || established(other) && !isOriginal(c))
}

// identify gives the cluster the id that its objects in VCD carry, and records where it is. What was recorded without
// an id is of the cluster that this one was copied from.
func (s *scope) identify() {
	c := s.vcdCluster
	if c.Spec.InfraID == "" {
		for _, key := range []string{
			infrav1.OVDCIDAnnotation, infrav1.OVDCNetworkIDAnnotation, infrav1.EndpointGatewayAnnotation,
			infrav1.EndpointAddressesAnnotation,
		} {
			delete(c.Annotations, key)
		}
		c.Spec.InfraID = string(c.UID)
	}
	recordHome(c, s.home)
}

// isOriginal reports whether the id of c was made for it, in this management cluster.
func isOriginal(c *infrav1.VCDCluster) bool { return c.Spec.InfraID == string(c.UID) }

// ranHere reports whether c was complete in this management cluster, and its status not lost since.
func ranHere(c *infrav1.VCDCluster) bool {
	return ptr.Deref(c.Status.Initialization.Provisioned, false)
}

// yieldsTo reports whether c may not work under the id that it shares with another. Of those that all may have been
// ready, and have lost their status, the oldest one works.
func yieldsTo(c, other *infrav1.VCDCluster) bool {
	return !established(c) || isOriginal(other) || ranHere(other) ||
		!c.CreationTimestamp.Before(&other.CreationTimestamp)
}

// duplicateProblem keeps a cluster that was never ready from working under the id of another.
func (s *scope) duplicateProblem(ctx context.Context) (phases.Outcome, error) {
	c := s.vcdCluster
	if isOriginal(c) || ranHere(c) {
		return phases.Done, nil
	}
	all, err := s.duplicates(ctx)
	first := slices.IndexFunc(all, func(other *infrav1.VCDCluster) bool { return yieldsTo(c, other) })
	if err != nil || first < 0 {
		return phases.Done, err
	}
	return phases.Fail(session.RemedyPoll, infrav1.InfraIDInUseReason,
		"spec.infraID %s is that of %s, whose objects in VCD carry it: create this cluster again without "+
			"spec.infraID and without annotations of %s",
		c.Spec.InfraID, session.NameFor(c, all[first]), infrav1.GroupVersion.Group), nil
}

// unlessDuplicated runs a phase of the deletion when no machine is left. It skips the phase while another cluster has
// the same id, unless isOwn reports that what the phase removes is not the other's.
func unlessDuplicated(
	run func(context.Context, *scope) (phases.Outcome, error), isOwn func(c, other *infrav1.VCDCluster) bool,
) func(context.Context, *scope) (phases.Outcome, error) {
	return func(ctx context.Context, s *scope) (phases.Outcome, error) {
		if out, err := s.waitForMachines(ctx); err != nil || out != phases.Done {
			return out, err
		}
		all, err := s.duplicates(ctx)
		if err != nil {
			return phases.Done, err
		}
		if slices.ContainsFunc(all, func(other *infrav1.VCDCluster) bool { return !isOwn(s.vcdCluster, other) }) {
			return phases.Done, nil
		}
		return run(ctx, s)
	}
}

// nothingOwn means that everything may be the other cluster's.
func nothingOwn(_, _ *infrav1.VCDCluster) bool { return false }

// ownVApp reports whether the vApp of c is not that of its duplicate: it has another name, and c was ready here.
func ownVApp(c, other *infrav1.VCDCluster) bool {
	return ranHere(c) &&
		vapp.Name(c, session.ClusterName(c, nil)) != vapp.Name(other, session.ClusterName(other, nil))
}
