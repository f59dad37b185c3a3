// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the end-to-end specs that Cluster API shares with its providers (sigs.k8s.io/cluster-api/test/e2e)
// against this provider: its manager as it is shipped, the real Cluster API, a simulated VMware Cloud Director and
// simulated workload clusters. No container is needed. `make e2e` runs them; plain `go test` skips them. After each
// spec nothing may be left in the simulated VCD.
//
// These run: QuickStart, after which owner references, finalizers and resource versions must recover and rest, and once
// more with a ClusterClass; MachineDeploymentScale; MachineDeploymentRemediation; ClusterDeletion;
// KCPAndMachineDeploymentRollout; ClusterUpgradeConformance without conformance, of a Cluster without a class, of one
// with a class, and of one over several versions; ClusterClassChanges; ClusterClassRollout; Scale. There is no CNI:
// simulated nodes are ready without. The class is the one that is shipped, templates/clusterclass-quick-start.yaml.
//
// These do not:
//
//   - K8SConformance, Autoscaler, NodeDrainTimeout: they need pods that run, or at least are scheduled and evicted.
//   - SelfHosted, ClusterctlUpgrade: they install providers as Deployments and wait until these are available.
//   - ClusterInPlaceUpdate and ClusterUpgradeWithRuntimeSDK: they need Cluster API's test extension, and in a Service.
//   - KCPRemediation: its machines run a script that asks a ConfigMap what to do next, and simulated guests run no
//     scripts.
//   - MachinePool: this provider has none.
//   - KCPAdoption, KCPInfraAdoption, KubeadmJoinOldNodes: nothing is known to
//     stand in their way, but they need templates of their own, which do not exist yet.
package e2e
