package main

import (
	"context"
	"errors"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteCluster deletes the cluster and looks whether anything is left of it.
func (q *quickstart) deleteCluster(ctx context.Context) error {
	q.say("Deleting the cluster")
	cluster := &clusterv1.Cluster{}
	cluster.Name, cluster.Namespace = clusterName, clusterNamespace
	if err := q.client.Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the cluster: %w", err)
	}
	if err := q.watch(ctx, "go away", func(v *view) bool { return v.gone }); err != nil {
		return err
	}
	if err := q.leftBehind(); err != nil {
		return err
	}
	q.say("Cluster deleted, nothing is left in the simulated VCD; %d calls in all", q.calls())
	return nil
}

// leftBehind is an error when the simulated VCD still holds something, or was asked for what it does not know.
func (q *quickstart) leftBehind() error {
	var errs []error
	state := q.simulator.State()
	for _, vapp := range state.VApps {
		errs = append(errs, fmt.Errorf("vApp %s is left", vapp.Name))
	}
	for i := range state.VMs {
		errs = append(errs, fmt.Errorf("VM %s is left", state.VMs[i].Name))
	}
	for i := range state.Disks {
		errs = append(errs, fmt.Errorf("disk %s is left", state.Disks[i].Name))
	}
	for _, route := range q.simulator.Unhandled() {
		errs = append(errs, fmt.Errorf("the simulator does not know %s", route))
	}
	return errors.Join(errs...)
}
