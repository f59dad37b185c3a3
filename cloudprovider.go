package main

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/cloudprovider"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/options"
)

// setUpCloudProvider registers the controller that installs the cloud controller manager in workload clusters, and the
// cache of clients of those clusters that have one.
func setUpCloudProvider(ctx context.Context, mgr manager.Manager, o *options.Options,
	r *cloudprovider.Reconciler,
) error {
	clusters, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: mgr.GetClient(), WatchFilterValue: o.WatchFilter,
		ClusterFilter: func(c *clusterv1.Cluster) bool { return c.Labels[infrav1.CloudProviderLabel] != "" },
		Client:        clustercache.ClientOptions{UserAgent: "cluster-api-provider-vcd"},
	}, options.Concurrency(o.ClusterConcurrency))
	if err != nil {
		return fmt.Errorf("setting up the connections to workload clusters: %w", err)
	}
	r.Workload = func(ctx context.Context, cluster client.ObjectKey) (client.Client, error) {
		return clusters.GetUncachedClient(ctx, cluster)
	}
	r.Connected = clusters.GetClusterSource("cloudprovider", cloudprovider.ClusterToVCDCluster)
	r.Image, r.LookEvery = o.CloudProviderImage(), o.CloudProviderLook
	return r.SetupWithManager(ctx, mgr, options.Concurrency(o.ClusterConcurrency))
}
