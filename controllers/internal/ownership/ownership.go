// SPDX-License-Identifier: Apache-2.0

// Package ownership decides which of several Kubernetes objects owns what carries their common id in VCD. Copies of
// manifests and of backups have the ids and annotations of the original, so these prove nothing between them.
package ownership

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
)

// isOriginal reports whether the id of c was made for it, in this management cluster.
func isOriginal(c *infrav1.VCDCluster) bool { return c.Spec.InfraID == string(c.UID) }

// ByCAPVCD reports whether c has an id that CAPVCD made: the URN of an entity, or NO_RDE_<UUID>.
func ByCAPVCD(c *infrav1.VCDCluster) bool { return capvcd.IsClusterID(c.Spec.InfraID) }

// RanHere reports whether c was complete in this management cluster, and its status not lost since.
func RanHere(c *infrav1.VCDCluster) bool {
	return ptr.Deref(c.Status.Initialization.Provisioned, false)
}

// Established reports whether a cluster was complete once, here or, by what a move keeps, elsewhere.
func Established(c *infrav1.VCDCluster) bool {
	return RanHere(c) || c.Spec.InfraID != "" && c.Spec.RecordedState.OVDCID != ""
}

// Duplicates returns the other VCDClusters with the id of c in the same organization, as are after a manifest was
// copied or a backup was restored beside the original. All that is marked with the id may be theirs then. One that was
// never ready, and is not the one that the id was created for, owns nothing; nor does one that is deleted, too.
func Duplicates(ctx context.Context, r client.Reader, c *infrav1.VCDCluster) ([]*infrav1.VCDCluster, error) {
	if c.Spec.InfraID == "" {
		return nil, nil
	}
	list := &infrav1.VCDClusterList{}
	if err := r.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
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
		sites.Same(other.Spec.Site, c.Spec.Site) &&
		(isOriginal(other) || RanHere(other) || Established(other) && !isOriginal(c))
}

// yieldsTo reports whether c may not work under the id that it shares with another. Of those that all may have been
// ready, and have lost their status, the oldest one works.
func yieldsTo(c, other *infrav1.VCDCluster) bool {
	return !Established(c) || isOriginal(other) || RanHere(other) ||
		!c.CreationTimestamp.Before(&other.CreationTimestamp)
}

// Refuse returns why neither c nor its machines may work under the id of c: it is another cluster's.
func Refuse(ctx context.Context, r client.Reader, c *infrav1.VCDCluster) (phases.Result, error) {
	if isOriginal(c) || RanHere(c) {
		return phases.Done, nil
	}
	all, err := Duplicates(ctx, r, c)
	first := slices.IndexFunc(all, func(other *infrav1.VCDCluster) bool { return yieldsTo(c, other) })
	if err != nil || first < 0 {
		return phases.Done, err
	}
	return phases.Fail(session.RemedyPoll, infrav1.InfraIDInUseReason,
		"spec.infraID %s already marks the objects of %s in VCD: recreate this cluster without spec.infraID and "+
			"spec.recordedState",
		c.Spec.InfraID, session.NameFor(c, all[first])), nil
}
