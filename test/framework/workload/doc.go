// SPDX-License-Identifier: Apache-2.0

// Package workload makes simulated VMs nodes of simulated Kubernetes clusters. It is the simulator's boot hook: a VM
// that is powered on reads its guestinfo (package guest), follows its kubeadm configuration, and becomes a Node of an
// in-memory Kubernetes API server that Cluster API's managers accept as a workload cluster: kubeadm control planes
// initialise, join, report etcd health and go away. Everything about a node (name, provider ID, addresses, labels,
// taints, role, cluster) comes from its guestinfo alone.
//
// The API servers listen on loopback. Their clients reach them under the control plane endpoint that the clusters were
// given, usually a virtual IP that exists nowhere, through an HTTP proxy: see [Workloads.ProxyURL] and [Workloads.Env].
//
// Not emulated: kubelet's certificate requests, bootstrap tokens as credentials, container networking (nodes are Ready
// without it), leases, events, and everything else that Cluster API's in-memory server does not know.
package workload
