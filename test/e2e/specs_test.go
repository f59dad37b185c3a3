// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterctlcluster "sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	clusterapi "sigs.k8s.io/cluster-api/test/e2e"
	"sigs.k8s.io/cluster-api/test/framework"
)

var _ = Describe("Quick start, with resilience of owner references and finalizers", Label("quick-start"), func() {
	clusterapi.QuickStartSpec(ctx, func() clusterapi.QuickStartSpecInput {
		return clusterapi.QuickStartSpecInput{
			E2EConfig:               config,
			ClusterctlConfigPath:    clusterctlConfig,
			BootstrapClusterProxy:   management,
			ArtifactFolder:          artifacts,
			PostMachinesProvisioned: resilience,
		}
	})
})

// resilience removes owner references and finalizers from all objects of a cluster, and checks that they are restored
// and that resource versions become stable.
func resilience(proxy framework.ClusterProxy, namespace, clusterName string) {
	filter := clusterctlcluster.FilterClusterObjectsWithNameFilter(clusterName)
	By("Removing all owner references")
	framework.ValidateOwnerReferencesResilience(ctx, proxy, namespace, clusterName, filter, owners()...)
	By("Changing the API version of all owner references")
	framework.ValidateOwnerReferencesOnUpdate(ctx, proxy, namespace, clusterName, filter, owners()...)
	By("Removing all finalizers")
	framework.ValidateFinalizersResilience(ctx, proxy, namespace, clusterName, filter, finalizers()...)
	By("Waiting until all resource versions are stable")
	framework.ValidateResourceVersionStable(ctx, framework.ValidateResourceVersionStableInput{
		ClusterProxy:             proxy,
		Namespace:                namespace,
		OwnerGraphFilterFunction: filter,
		WaitToBecomeStable:       config.GetIntervals("quick-start", "wait-resource-versions-become-stable"),
		WaitToRemainStable:       config.GetIntervals("quick-start", "wait-resource-versions-remain-stable"),
	})
}

var _ = Describe("Scaling a MachineDeployment", Label("md-scale"), func() {
	clusterapi.MachineDeploymentScaleSpec(ctx, func() clusterapi.MachineDeploymentScaleSpecInput {
		return clusterapi.MachineDeploymentScaleSpecInput{
			E2EConfig:             config,
			ClusterctlConfigPath:  clusterctlConfig,
			BootstrapClusterProxy: management,
			ArtifactFolder:        artifacts,
		}
	})
})

var _ = Describe("Deleting a cluster in order", Label("deletion"), func() {
	clusterapi.ClusterDeletionSpec(ctx, func() clusterapi.ClusterDeletionSpecInput {
		return clusterapi.ClusterDeletionSpecInput{
			E2EConfig:                config,
			ClusterctlConfigPath:     clusterctlConfig,
			BootstrapClusterProxy:    management,
			ArtifactFolder:           artifacts,
			ControlPlaneMachineCount: ptr.To[int64](3),
			ClusterDeletionPhases:    deletionPhases(),
		}
	})
})

// deletionPhases returns the order in which a cluster is deleted: workers, control planes, infrastructure.
func deletionPhases() []clusterapi.ClusterDeletionPhase {
	kinds := func(names ...string) func(corev1.ObjectReference, []metav1.OwnerReference) bool {
		return func(object corev1.ObjectReference, _ []metav1.OwnerReference) bool {
			return slices.Contains(names, object.Kind)
		}
	}
	machinesAnd := func(owner string, names ...string) func(corev1.ObjectReference, []metav1.OwnerReference) bool {
		return func(object corev1.ObjectReference, owners []metav1.OwnerReference) bool {
			owned := slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.Kind == owner })
			return object.Kind == "Machine" && owned || slices.Contains(names, object.Kind)
		}
	}
	return []clusterapi.ClusterDeletionPhase{
		{
			ObjectFilter:         machinesAnd("MachineSet", "MachineSet", "MachineDeployment"),
			BlockingObjectFilter: kinds("Machine"),
		},
		{
			ObjectFilter:         machinesAnd("KubeadmControlPlane", "KubeadmControlPlane"),
			BlockingObjectFilter: kinds("Machine"),
		},
		{ObjectFilter: kinds("VCDCluster"), BlockingObjectFilter: kinds("VCDCluster")},
	}
}

var _ = Describe("Changing machines in place and by rollout", Label("rollout"), func() {
	clusterapi.KCPAndMachineDeploymentRolloutSpec(ctx, func() clusterapi.KCPAndMachineDeploymentRolloutSpecInput {
		return clusterapi.KCPAndMachineDeploymentRolloutSpecInput{
			E2EConfig:             config,
			ClusterctlConfigPath:  clusterctlConfig,
			BootstrapClusterProxy: management,
			ArtifactFolder:        artifacts,
			Flavor:                "taints",
		}
	})
})

var _ = Describe("Replacing an unhealthy worker", Label("remediation"), func() {
	clusterapi.MachineDeploymentRemediationSpec(ctx, func() clusterapi.MachineDeploymentRemediationSpecInput {
		return clusterapi.MachineDeploymentRemediationSpecInput{
			E2EConfig:             config,
			ClusterctlConfigPath:  clusterctlConfig,
			BootstrapClusterProxy: management,
			ArtifactFolder:        artifacts,
		}
	})
})

var _ = Describe("Upgrading Kubernetes", Label("upgrade"), func() {
	clusterapi.ClusterUpgradeConformanceSpec(ctx, func() clusterapi.ClusterUpgradeConformanceSpecInput {
		return clusterapi.ClusterUpgradeConformanceSpecInput{
			E2EConfig:                config,
			ClusterctlConfigPath:     clusterctlConfig,
			BootstrapClusterProxy:    management,
			ArtifactFolder:           artifacts,
			ControlPlaneMachineCount: ptr.To[int64](3),
			WorkerMachineCount:       ptr.To[int64](2),
			SkipConformanceTests:     true, // No kubelet is running.
		}
	})
})
