// SPDX-License-Identifier: Apache-2.0

package docs_test

// Names in pages that are defined by other projects or VMware's former programs.
var (
	foreignTargets = []string{"kind-cluster", "build-node-ova-local-ubuntu-2404"}
	foreignWords   = []string{
		"RequireDualStack", "EnsuringLoadBalancer", "EnsuredLoadBalancer", "SyncLoadBalancerFailed", // Kubernetes
		"TopologyReconciled",                                                      // Cluster API
		"LoadBalancerAvailable", "ContainerProvisioned", "BootstrapExecSucceeded", // CAPVCD
	}
	foreignFlags = []string{
		"from-directory",                                                            // clusterctl
		"log-flush-frequency", "log-json-info-buffer-size", "log-json-split-stream", // k8s.io/component-base
		"log-text-info-buffer-size", "log-text-split-stream", "vmodule",
	}
	foreignFields = []string{"status.cpi", "status.capvcd", "spec.vcdKe.isVCDKECluster", "status.vcdKe"} // of CAPVCD's runtime defined entity
)
