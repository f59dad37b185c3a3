// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// unlessDuplicated runs a phase of the deletion after all machines are gone. It skips the phase while another cluster
// has the same ID, unless isOwn reports that the objects to remove do not belong to the other cluster.
func unlessDuplicated(
	run func(context.Context, *scope) (phases.Result, error), isOwn func(c, other *infrav1.VCDCluster) bool,
) func(context.Context, *scope) (phases.Result, error) {
	return func(ctx context.Context, s *scope) (phases.Result, error) {
		c := s.vcdCluster
		reader := s.reconciler.Client
		if out, err := waitForMachines(ctx, reader, c.Namespace, s.clusterName()); err != nil || out != phases.Done {
			return out, err
		}
		all, err := ownership.Duplicates(ctx, reader, c)
		if err != nil {
			return phases.Done, err
		}
		if slices.ContainsFunc(all, func(other *infrav1.VCDCluster) bool { return !isOwn(c, other) }) {
			return phases.Done, nil
		}
		return run(ctx, s)
	}
}

// nothingOwn reports that all objects may belong to the other cluster.
func nothingOwn(_, _ *infrav1.VCDCluster) bool { return false }

// ownVApp reports whether c has another vApp than its duplicate: the names differ, and c was ready here.
func ownVApp(c, other *infrav1.VCDCluster) bool {
	return ownership.RanHere(c) &&
		vapp.Name(c, capicluster.Name(c, nil)) != vapp.Name(other, capicluster.Name(other, nil))
}

// waitForMachines waits until no VCDMachine of the named Cluster remains.
func waitForMachines(ctx context.Context, reader client.Reader, namespace, cluster string) (phases.Result, error) {
	if cluster == "" {
		return phases.Done, nil
	}
	machines := &infrav1.VCDMachineList{}
	if err := reader.List(ctx, machines, client.InNamespace(namespace), index.OfCluster(cluster)); err != nil {
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
	return phases.Wait(intervals.Task, infrav1.WaitingForMachineDeletionReason, "Waiting for VCDMachines to be deleted: %s",
		phases.Few(names)), nil
}
