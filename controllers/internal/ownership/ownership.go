// SPDX-License-Identifier: Apache-2.0

// Package ownership decides which of several Kubernetes objects with the same ID owns the objects that are marked with
// that ID in VCD. Copies of manifests and backups have the IDs and annotations of the original, so these prove nothing.
package ownership

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
)

// isOriginal reports whether the ID of c was created for c, in this management cluster.
func isOriginal(c *infrav1.VCDCluster) bool { return c.Spec.InfraID == string(c.UID) }

// ByCAPVCD reports whether CAPVCD created the ID of c: the URN of an entity, or NO_RDE_<UUID>.
func ByCAPVCD(c *infrav1.VCDCluster) bool { return capvcd.IsClusterID(c.Spec.InfraID) }

// RanHere reports whether c was complete in this management cluster, and has not lost its status since.
func RanHere(c *infrav1.VCDCluster) bool {
	return ptr.Deref(c.Status.Initialization.Provisioned, false)
}

// Established reports whether c was complete once, in this management cluster or, according to fields that survive a
// move, in another one.
func Established(c *infrav1.VCDCluster) bool {
	return RanHere(c) || c.Spec.InfraID != "" && c.Spec.RecordedState.OVDCID != ""
}

// Duplicates returns the other VCDClusters with the ID of c in the same organization. They exist after a manifest was
// copied, or a backup was restored beside the original, and may own all objects with the ID. A cluster that was never
// ready, and for which the ID was not created, owns nothing. Neither does a cluster that is being deleted.
func Duplicates(ctx context.Context, r client.Reader, c *infrav1.VCDCluster) ([]*infrav1.VCDCluster, error) {
	if c.Spec.InfraID == "" {
		return nil, nil
	}
	list := &infrav1.VCDClusterList{}
	if err := r.List(ctx, list, index.WithInfraID(c.Spec.InfraID), client.UnsafeDisableDeepCopy); err != nil {
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

// sharesID reports whether objects with the ID of c in VCD may belong to other: the ID was created for other, or other
// was complete once. If the latter is only recorded in its spec, which may be copied, it proves nothing against the
// original.
func sharesID(c, other *infrav1.VCDCluster) bool {
	return other.Spec.InfraID == c.Spec.InfraID && other.Spec.Org == c.Spec.Org &&
		sites.Same(other.Spec.Site, c.Spec.Site) &&
		(isOriginal(other) || RanHere(other) || Established(other) && !isOriginal(c))
}

// yieldsTo reports whether c may not use the ID that it shares with other. If all of them may have been ready, and have
// lost their status, the oldest one may use it.
func yieldsTo(c, other *infrav1.VCDCluster) bool {
	return !Established(c) || isOriginal(other) || RanHere(other) ||
		!c.CreationTimestamp.Before(&other.CreationTimestamp)
}

// Refuse returns a problem if neither c nor its machines may use the ID of c, because it belongs to another cluster.
func Refuse(ctx context.Context, r client.Reader, c *infrav1.VCDCluster) (phases.Result, error) {
	if isOriginal(c) || RanHere(c) {
		return phases.Done, nil
	}
	all, err := Duplicates(ctx, r, c)
	first := slices.IndexFunc(all, func(other *infrav1.VCDCluster) bool { return yieldsTo(c, other) })
	if err != nil || first < 0 {
		return phases.Done, err
	}
	return phases.Fail(intervals.Remedy, infrav1.InfraIDInUseReason,
		"spec.infraID %s already marks the objects of %s in VCD: recreate this cluster without spec.infraID and spec.recordedState",
		c.Spec.InfraID, capicluster.NameFor(c, all[first])), nil
}
