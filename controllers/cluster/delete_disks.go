// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteDisks deletes the cluster's independent disks one by one. It skips attached disks: since the cluster no longer
// has VMs, they are in use elsewhere.
func deleteDisks(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || !s.vAppsGone {
		// VMs that may remain could need these disks, even those that are detached at the moment.
		return phases.Done, nil
	}
	disks, out, err := ownDisks(ctx, s.places(), c.Spec.InfraID)
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
		if disk.Attached {
			continue
		}
		task, out, err := deleteDisk(ctx, disk)
		if err == nil && out == phases.Done {
			diskDeleted(s.reconciler.Recorder, c, disk.Ref)
			disk.session.Follow(key, task, s.wake)
			out = phases.Wait(intervals.Task, infrav1.TaskRunningReason,
				"Waiting for VCD to delete independent disk %s", disk.Name)
		}
		return out, err
	}
	return phases.Done, nil
}

// settleDisk waits for the task that deletes a disk.
func settleDisk(in *session.Session, key string) phases.Result {
	t, ok := in.Task(key)
	switch {
	case !ok:
		return phases.Done
	case t.State == vcd.TaskRunning:
		return phases.Wait(intervals.Task, infrav1.TaskRunningReason, "Waiting for VCD to delete independent disks")
	}
	in.Forget(key)
	if t.State == vcd.TaskFailed {
		return problems.OfTask(t, "Deleting an independent disk")
	}
	return phases.Done
}

// deleteDisk starts to delete a disk. It returns the task, or the result if no task was started.
func deleteDisk(ctx context.Context, disk ownDisk) (vcd.Task, phases.Result, error) {
	ctrl.LoggerFrom(ctx).Info("Deleting independent disk", "disk", disk.ID, "name", disk.Name)
	task, err := disk.session.DeleteNamedDisk(ctx, disk.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return task, phases.Wait(intervals.Busy, infrav1.EntityBusyReason,
			"Independent disk %s no longer exists", disk.Name), nil
	case err != nil:
		out, err := problems.OfWrite(err,
			"Deleting independent disk "+disk.Name+" (or set spec.orphanedDiskPolicy to Retain)")
		return task, out, err
	}
	return task, phases.Done, nil
}
