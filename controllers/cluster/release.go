package cluster

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// waitForMachines waits until no VCDMachine of the cluster remains.
func (s *scope) waitForMachines(ctx context.Context) (phases.Outcome, error) {
	name := session.ClusterName(s.vcdCluster, s.cluster)
	if name == "" {
		return phases.Done, nil
	}
	machines := &infrav1.VCDMachineList{}
	if err := s.Client.List(ctx, machines, client.InNamespace(s.vcdCluster.Namespace),
		session.OfCluster(name)); err != nil {
		return phases.Done, fmt.Errorf("listing VCDMachines: %w", err)
	}
	if len(machines.Items) == 0 {
		return phases.Done, nil
	}
	names := make([]string, 0, len(machines.Items))
	for _, m := range machines.Items {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return phases.Wait(session.TaskPoll, infrav1.MachinesRemainReason, "Waiting for VCDMachines to be deleted: %s",
		phases.Few(names)), nil
}

// releaseCluster frees the claimed address and lets the API server delete the VCDCluster.
func releaseCluster(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	if name := session.ClusterName(c, s.cluster); name != "" {
		key := claimKey(c, name)
		claim := &ipamv1.IPAddressClaim{}
		err := s.Client.Get(ctx, key, claim)
		if err == nil && metav1.IsControlledBy(claim, c) && claim.DeletionTimestamp.IsZero() {
			err = s.Client.Delete(ctx, claim)
		}
		if client.IgnoreNotFound(err) != nil {
			return phases.Done, fmt.Errorf("deleting IPAddressClaim %s: %w", key, err)
		}
	}
	all, err := s.duplicates(ctx)
	switch {
	case err != nil:
		return phases.Done, err
	case len(all) > 0:
		leftToDuplicate(s.Recorder, c)
	default:
		if disks := s.remainingDisks(ctx); len(disks) > 0 {
			disksLeft(s.Recorder, c, disks)
		}
	}
	s.Drivers.Forget(s.cluster)
	s.purges.Drop(c.UID)
	s.homes.Drop(c.UID)
	controllerutil.RemoveFinalizer(c, infrav1.ClusterFinalizer)
	return phases.Done, nil
}
