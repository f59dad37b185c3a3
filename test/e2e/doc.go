// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the end-to-end specs that Cluster API shares with its providers (sigs.k8s.io/cluster-api/test/e2e)
// against this provider: the manager as shipped, the real Cluster API, a simulated VMware Cloud Director, and simulated
// workload clusters. It needs no containers. `make e2e` runs the specs; plain `go test` skips them. After each spec,
// the simulated VCD must be empty.
//
// These specs run: QuickStart, which also checks that owner references and finalizers are restored and that resource
// versions become stable, and again with a ClusterClass; MachineDeploymentScale; MachineDeploymentRemediation;
// ClusterDeletion; KCPAndMachineDeploymentRollout; ClusterUpgradeConformance without conformance tests, for a Cluster
// without a class, for one with a class, and over several versions; ClusterClassChanges; ClusterClassRollout; Scale;
// ClusterInPlaceUpdate, with a runtime extension of this package. The clusters have no CNI, because simulated nodes
// become ready without one. The ClusterClass is the shipped templates/clusterclass-quick-start.yaml.
//
// These specs do not run:
//   - K8SConformance, Autoscaler, NodeDrainTimeout: they need running pods, or at least scheduling and eviction. Tests of
//     real nodes run NodeDrainTimeout, the conformance tests of Kubernetes, and the cluster autoscaler.
//   - SelfHosted, ClusterctlUpgrade: they install providers as Deployments and wait until these are available.
//   - ClusterUpgradeWithRuntimeSDK: it needs Cluster API's test extension, behind a Service.
//   - KCPRemediation: its machines run a script that reads its next step from a ConfigMap, but simulated guests run no
//     scripts.
//   - MachinePool: this provider does not support machine pools.
//   - KCPInfraAdoption: it deletes a cluster by force and creates it again from its class. The VCDCluster then has
//     another ID, and its machines do not own the VMs of the deleted cluster.
//   - KubeadmJoinOldNodes: it runs commands in the nodes, which are containers there.
package e2e
