// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// ownsDisk reports whether a disk is a cluster's.
func ownsDisk(infraID string, disk vcd.NamedDisk) bool {
	return infraID != "" && disk.Cluster() == infraID
}

// An ownDisk is a disk of the cluster, with the session that showed it.
type ownDisk struct {
	vcd.NamedDisk

	session *session.Session
}

// ownDisks lists the disks of the cluster in all VDCs that it has VMs in. It returns those of the others if one cannot
// be asked.
func (s *scope) ownDisks(ctx context.Context) ([]ownDisk, phases.Outcome, error) {
	var found []ownDisk
	var all first
	listed := map[string]bool{}
	for _, home := range homesOf(s.vcdCluster, session.ClusterName(s.vcdCluster, s.cluster)) {
		at, out, err := s.openIn(ctx, home)
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
			all.add(session.Unread(err, "Listing independent disks"))
		}
		for _, d := range disks {
			if ownsDisk(s.vcdCluster.Spec.InfraID, d) {
				found = append(found, ownDisk{d, at.session})
			}
		}
	}
	return found, all.out, all.err
}

// deleteDisks deletes the cluster's independent disks, one after the other. Attached ones are in use elsewhere, for the
// cluster has no VM any more: they stay.
func deleteDisks(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || !s.gone {
		// Where VMs may be left, their disks may be needed, also those that are detached at the moment.
		return phases.Done, nil
	}
	disks, out, err := s.ownDisks(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	key := string(c.UID) + "/disk"
	for _, disk := range disks {
		if out := settleDisk(disk.session, key); out != phases.Done {
			return out, nil
		}
	}
	for _, disk := range disks {
		if !disk.Attached {
			return s.deleteDisk(ctx, key, disk)
		}
	}
	return phases.Done, nil
}

// settleDisk waits for the task that deletes a disk.
func settleDisk(in *session.Session, key string) phases.Outcome {
	t, ok := in.Task(key)
	switch {
	case !ok:
		return phases.Done
	case t.State == vcd.TaskRunning:
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete independent disks")
	}
	in.Forget(key)
	if t.State == vcd.TaskFailed {
		return session.TaskFailure(t, "Deleting an independent disk")
	}
	return phases.Done
}

func (s *scope) deleteDisk(ctx context.Context, key string, disk ownDisk) (phases.Outcome, error) {
	ctrl.LoggerFrom(ctx).Info("Deleting independent disk", "disk", disk.ID, "name", disk.Name)
	task, err := disk.session.DeleteNamedDisk(ctx, disk.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Independent disk %s disappeared meanwhile",
			disk.Name), nil
	case err != nil:
		return session.Refusal(err,
			"Deleting independent disk "+disk.Name+" (or set spec.orphanedDiskPolicy to Retain)")
	}
	diskDeleted(s.reconciler.Recorder, s.vcdCluster, disk.Ref)
	disk.session.Follow(key, task, s.reconciler.wakeUps.ForObject(s.vcdCluster))
	return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete independent disk %s",
		disk.Name), nil
}

// remainingDisks lists the known independent disks that outlive the cluster: those that are marked as the cluster's,
// and those that were detached from its VMs, which may have been deleted since. The deletion does not wait for it.
func (s *scope) remainingDisks(ctx context.Context) []string {
	known := notes.DetachedDisks(s.vcdCluster)
	if s.vcdCluster.Spec.InfraID == "" {
		return known
	}
	marked, out, err := s.ownDisks(ctx)
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
