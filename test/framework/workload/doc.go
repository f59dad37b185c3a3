// SPDX-License-Identifier: Apache-2.0

// Package workload turns simulated VMs into nodes of simulated Kubernetes clusters. It is the guest of the simulator: a
// VM that is powered on reads its guestinfo (package guest), follows its kubeadm configuration, and becomes a Node of
// an in-memory Kubernetes API server. Cluster API's managers accept that server as a workload cluster: kubeadm control
// planes initialize, join, report etcd health and leave. Everything about a node (name, provider ID, addresses, labels,
// taints, role, cluster) comes only from its guestinfo.
//
// The API servers listen on loopback addresses. Clients reach them under the control plane endpoint of the cluster,
// usually a virtual IP that does not exist, through an HTTP proxy: see [Workloads.ProxyURL] and [Workloads.Env].
//
// The following are not emulated: kubelet's certificate requests, bootstrap tokens as credentials, container networking
// (nodes are Ready without it), leases, events, and everything else that Cluster API's in-memory server does not
// support.
package workload
