// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// An ownDisk is a disk of the cluster, with a session that can see it.
type ownDisk struct {
	vcd.NamedDisk

	session *session.Session
}

// ownDisks lists the disks that are marked with a cluster's ID, in all VDCs in which the cluster has VMs. If a VDC
// cannot be queried, it also returns the disks in the others.
func ownDisks(ctx context.Context, in places, infraID string) ([]ownDisk, phases.Result, error) {
	var found []ownDisk
	var all first
	listed := map[string]bool{}
	for _, home := range in.homes() {
		at, out, err := in.open(ctx, home)
		if err != nil || out != phases.Done {
			all.add(out, err)
			continue
		}
		if listed[at.vdc.ID] {
			continue
		}
		listed[at.vdc.ID] = true
		disks, err := at.session.NamedDisks(ctx, at.vdc)
		if err != nil {
			all.add(problems.OfRead(err, "Listing independent disks"))
		}
		for _, d := range disks {
			if ownsDisk(infraID, d) {
				found = append(found, ownDisk{d, at.session})
			}
		}
	}
	return found, all.out, all.err
}

// ownsDisk reports whether a disk is marked with the ID of a cluster.
func ownsDisk(infraID string, disk vcd.NamedDisk) bool {
	return infraID != "" && disk.Cluster() == infraID
}

// remainingDisks lists the known independent disks that outlive a cluster: those that are marked with its ID, and those
// that were detached from its VMs, which may have been deleted since. The deletion does not wait for this list.
func remainingDisks(ctx context.Context, in places, c *infrav1.VCDCluster) []string {
	known := notes.DetachedDisks(c)
	if c.Spec.InfraID == "" {
		return known
	}
	marked, out, err := ownDisks(ctx, in, c.Spec.InfraID)
	if err != nil || out != phases.Done {
		ctrl.LoggerFrom(ctx).Info("Cannot list the cluster's independent disks", "reason", out.Message, "error", err)
	}
	for _, disk := range marked {
		if text := notes.DiskText(disk.Ref); !slices.Contains(known, text) {
			known = append(known, text)
		}
	}
	slices.Sort(known)
	return known
}
