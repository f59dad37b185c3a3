package cluster

import (
	"context"
	"fmt"
	"slices"

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
	all, err := s.duplicates(ctx)
	if err == nil {
		err = s.freeAddresses(ctx, len(all) > 0)
	}
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
	s.endpoints.Drop(c.UID)
	s.Endpoints.Forget(c.UID)
	s.homes.Drop(c.UID)
	controllerutil.RemoveFinalizer(c, infrav1.ClusterFinalizer)
	return phases.Done, nil
}
