package controllers

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// uuid is in every id that the controller makes up.
var uuid = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// namedDisks looks after independent disks.
type namedDisks interface {
	NamedDisks(ctx context.Context, vdc vcd.VDC) ([]vcd.NamedDisk, error)
	DeleteNamedDisk(ctx context.Context, id string) (vcd.Task, error)
}

// ownsDisk says whether a disk is a cluster's: its description has our marker, or is the cluster's id and nothing else, which is what
// VMware's CSI driver writes when it is given that id. An id that a person chose could be anybody's word.
func ownsDisk(infraID string, disk vcd.NamedDisk) bool {
	if marker, ok := vcd.ParseMarker(disk.Description); ok {
		return infraID != "" && marker.Cluster == infraID
	}
	return strings.TrimSpace(disk.Description) == infraID && uuid.MatchString(infraID)
}

// ownDisks lists the disks of the cluster.
func (s *clusterScope) ownDisks(ctx context.Context) ([]vcd.NamedDisk, outcome, error) {
	if s.session == nil {
		opened, out, err := s.Identities.open(ctx, s.Sessions, s.vcdCluster)
		if err != nil || out != done {
			return nil, out, err
		}
		s.session = opened
	}
	vdc, out, err := vdcOf(ctx, s.session, s.vcdCluster)
	if err != nil || out != done {
		return nil, out, err
	}
	disks, err := s.session.NamedDisks(ctx, vdc)
	if err != nil {
		out, err := refusal(err, "Listing independent disks")
		return nil, out, err
	}
	return slices.DeleteFunc(disks, func(d vcd.NamedDisk) bool { return !ownsDisk(s.vcdCluster.Spec.InfraID, d) }), done, nil
}

// deleteClusterDisks deletes the cluster's independent disks, one after the other. Those that are attached are in use by somebody
// else, for the cluster has no VM any more: they stay.
func deleteClusterDisks(ctx context.Context, s *clusterScope) (outcome, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || !s.gone {
		return done, nil // Where VMs may be left, somebody may need the disks: those that are detached just now, too.
	}
	disks, out, err := s.ownDisks(ctx)
	if err != nil || out != done {
		return out, err
	}
	key := string(c.UID) + "/disk"
	if t, ok := s.session.Task(key); ok {
		if t.State == vcd.TaskRunning {
			return wait(taskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete independent disks"), nil
		}
		s.session.Forget(key)
		if t.State == vcd.TaskFailed {
			return taskFailure(t, "Deleting an independent disk"), nil
		}
	}
	for _, disk := range disks {
		if !disk.Attached {
			return s.deleteDisk(ctx, key, disk)
		}
	}
	return done, nil
}

func (s *clusterScope) deleteDisk(ctx context.Context, key string, disk vcd.NamedDisk) (outcome, error) {
	ctrl.LoggerFrom(ctx).Info("Deleting independent disk", "disk", disk.ID, "name", disk.Name)
	task, err := s.session.DeleteNamedDisk(ctx, disk.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return wait(busyPoll, infrav1.EntityBusyReason, "Independent disk %s went away meanwhile", disk.Name), nil
	case err != nil:
		return refusal(err, "Deleting independent disk "+disk.Name+" (or set spec.orphanedDiskPolicy to Retain)")
	}
	diskDeleted(s.Recorder, s.vcdCluster, disk.Ref)
	s.session.Follow(key, task, s.wakeUps.forObject(s.vcdCluster))
	return wait(taskPoll, infrav1.TaskRunningReason, "Waiting for VCD to delete independent disk %s", disk.Name), nil
}

// disksThatStay lists the independent disks that outlive the cluster, as far as anybody knows: those that are marked as the
// cluster's, and those that were detached from its VMs. Who owns the latter may have deleted them since. Nobody waits for it.
func (s *clusterScope) disksThatStay(ctx context.Context) []string {
	known := detachedDisks(s.vcdCluster)
	if s.vcdCluster.Spec.InfraID == "" {
		return known
	}
	marked, out, err := s.ownDisks(ctx)
	if err != nil || out != done {
		ctrl.LoggerFrom(ctx).Info("Cannot list the cluster's independent disks", "reason", out.message, "error", errorText(err))
	}
	for _, disk := range marked {
		if text := diskText(disk.Ref); !slices.Contains(known, text) {
			known = append(known, text)
		}
	}
	slices.Sort(known)
	return known
}

// detachedDisks lists the independent disks that were detached from VMs of c.
func detachedDisks(c *infrav1.VCDCluster) []string {
	var disks []string
	for key, name := range c.Annotations {
		if id, ok := strings.CutPrefix(key, infrav1.DetachedDiskAnnotationPrefix); ok {
			disks = append(disks, diskText(vcd.Ref{ID: "urn:vcloud:disk:" + id, Name: name}))
		}
	}
	return disks
}

func diskText(disk vcd.Ref) string { return disk.Name + " (" + disk.ID + ")" }

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
