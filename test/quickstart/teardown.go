// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteCluster deletes the cluster, and checks that no orphaned resources remain in the simulated VCD.
func (q *quickstart) deleteCluster(ctx context.Context) error {
	q.printf("Deleting the cluster")
	cluster := &clusterv1.Cluster{}
	cluster.Name = clusterName
	cluster.Namespace = clusterNamespace
	if err := q.client.Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the cluster: %w", err)
	}
	if err := q.watch(ctx, "go away", func(v *view) bool { return v.gone }); err != nil {
		return err
	}
	if err := q.checkLeftovers(); err != nil {
		return err
	}
	q.printf("Cluster deleted, nothing is left in the simulated VCD; %d calls in all", q.calls())
	return nil
}

// checkLeftovers returns an error if objects remain in the simulated VCD, or if it received unsupported requests.
func (q *quickstart) checkLeftovers() error {
	var errs []error
	for _, what := range q.site.Left() {
		errs = append(errs, fmt.Errorf("left in the simulated VCD: %s", what))
	}
	return errors.Join(errs...)
}
