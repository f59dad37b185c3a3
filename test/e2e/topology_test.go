package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/utils/ptr"
	clusterapi "sigs.k8s.io/cluster-api/test/e2e"
)

var _ = Describe("Quick start with a ClusterClass", Label("quick-start-topology"), func() {
	clusterapi.QuickStartSpec(ctx, func() clusterapi.QuickStartSpecInput {
		return clusterapi.QuickStartSpecInput{
			E2EConfig: config, ClusterctlConfigPath: clusterctlConfig, BootstrapClusterProxy: management,
			ArtifactFolder: artifacts,
			Flavor:         ptr.To("topology"),
		}
	})
})

var _ = Describe("Many clusters at a time", Label("scale"), func() {
	clusterapi.ScaleSpec(ctx, func() clusterapi.ScaleSpecInput {
		return clusterapi.ScaleSpecInput{
			E2EConfig: config, ClusterctlConfigPath: clusterctlConfig, BootstrapClusterProxy: management,
			ArtifactFolder: artifacts,
			ClusterCount:   ptr.To[int64](4), Concurrency: ptr.To[int64](4),
			WorkerPerMachineDeploymentCount: ptr.To[int64](1),
			Flavor:                          ptr.To("topology"),
		}
	})
})
