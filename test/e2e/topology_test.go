// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterapi "sigs.k8s.io/cluster-api/test/e2e"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("Quick start with a ClusterClass", Label("quick-start-topology"), func() {
	clusterapi.QuickStartSpec(ctx, func() clusterapi.QuickStartSpecInput {
		return clusterapi.QuickStartSpecInput{
			E2EConfig:             config,
			ClusterctlConfigPath:  clusterctlConfig,
			BootstrapClusterProxy: management,
			ArtifactFolder:        artifacts,
			Flavor:                ptr.To("topology"),
		}
	})
})

var _ = Describe("Several clusters at the same time", Label("scale"), func() {
	clusterapi.ScaleSpec(ctx, func() clusterapi.ScaleSpecInput {
		return clusterapi.ScaleSpecInput{
			E2EConfig:                       config,
			ClusterctlConfigPath:            clusterctlConfig,
			BootstrapClusterProxy:           management,
			ArtifactFolder:                  artifacts,
			ClusterCount:                    ptr.To[int64](4),
			Concurrency:                     ptr.To[int64](4),
			WorkerPerMachineDeploymentCount: ptr.To[int64](1),
			Flavor:                          ptr.To("topology"),
		}
	})
})

var _ = Describe("Changing a ClusterClass", Label("clusterclass-changes"), func() {
	clusterapi.ClusterClassChangesSpec(ctx, func() clusterapi.ClusterClassChangesSpecInput {
		return clusterapi.ClusterClassChangesSpecInput{
			E2EConfig:                config,
			ClusterctlConfigPath:     clusterctlConfig,
			BootstrapClusterProxy:    management,
			ArtifactFolder:           artifacts,
			Flavor:                   "topology",
			ModifyControlPlaneFields: map[string]any{"spec.kubeadmConfigSpec.verbosity": int64(4)},
			ModifyMachineDeploymentBootstrapConfigTemplateFields: map[string]any{"spec.template.spec.verbosity": int64(4)},
			// A patch of the class overwrites the spec, but not the labels of the template.
			ModifyMachineDeploymentInfrastructureMachineTemplateFields: map[string]any{
				"spec.template.metadata.labels": map[string]any{"changed": "true"},
			},
		}
	})
})

var _ = Describe("Rolling out a ClusterClass", Label("clusterclass-rollout"), func() {
	clusterapi.ClusterClassRolloutSpec(ctx, func() clusterapi.ClusterClassRolloutSpecInput {
		return clusterapi.ClusterClassRolloutSpecInput{
			E2EConfig:                      config,
			ClusterctlConfigPath:           clusterctlConfig,
			BootstrapClusterProxy:          management,
			ArtifactFolder:                 artifacts,
			Flavor:                         "topology-taints",
			FilterMetadataBeforeValidation: withoutProviderMetadata,
		}
	})
})

// withoutProviderMetadata returns the labels and annotations of an object, except those of this provider.
func withoutProviderMetadata(object client.Object) clusterv1.ObjectMeta {
	added := func(key, _ string) bool { return strings.HasPrefix(key, "infrastructure.cluster.x-k8s.io/") }
	meta := clusterv1.ObjectMeta{Labels: maps.Clone(object.GetLabels()), Annotations: maps.Clone(object.GetAnnotations())}
	maps.DeleteFunc(meta.Labels, added)
	maps.DeleteFunc(meta.Annotations, added)
	return meta
}

var _ = Describe("Upgrading Kubernetes with spec.topology.version", Label("upgrade-topology"), func() {
	upgradeByTopology("topology", upgradeFrom)
})

var _ = Describe("Upgrading Kubernetes over several versions with spec.topology.version", Label("upgrade-chained"), func() {
	upgradeByTopology("chained", chainFrom)
})

// upgradeByTopology changes only spec.topology.version. The class selects the VM template.
func upgradeByTopology(flavor, from string) {
	clusterapi.ClusterUpgradeConformanceSpec(ctx, func() clusterapi.ClusterUpgradeConformanceSpecInput {
		upgrade := *config
		upgrade.Variables = maps.Clone(config.Variables)
		upgrade.Variables[clusterapi.KubernetesVersionUpgradeFrom] = from
		return clusterapi.ClusterUpgradeConformanceSpecInput{
			E2EConfig:                &upgrade,
			ClusterctlConfigPath:     clusterctlConfig,
			BootstrapClusterProxy:    management,
			ArtifactFolder:           artifacts,
			Flavor:                   ptr.To(flavor),
			ControlPlaneMachineCount: ptr.To[int64](3),
			WorkerMachineCount:       ptr.To[int64](1),
			SkipConformanceTests:     true, // No kubelet is running.
		}
	})
}
