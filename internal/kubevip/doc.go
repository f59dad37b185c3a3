// SPDX-License-Identifier: Apache-2.0

// Package kubevip renders what a control plane needs so that kube-vip announces its endpoint: a static pod
// manifest and two scripts for the node, the data of the Secret <cluster>-kube-vip, and the objects of a DaemonSet. It
// is pure and knows neither VCD nor a client of Kubernetes.
//
// The manifests are what kube-vip's own generator makes (hack/kubevip, a module of its own), with the fields of a
// cluster set on the typed objects. The generator's image registry is replaced as a whole, so that clusters
// without internet pull from theirs. What is rendered is kept in testdata, where the tests of hack/kubevip read it with
// kube-vip's own parser.
//
// # What a KubeadmControlPlane needs
//
// kubeadmConfigSpec has to hold this, with the name of the cluster for ${CLUSTER_NAME}:
//
//	files:
//	- path: /etc/kubernetes/manifests/kube-vip.yaml
//	  owner: root:root
//	  permissions: "0600"
//	  contentFrom:
//	    secret:
//	      name: ${CLUSTER_NAME}-kube-vip
//	      key: kube-vip.yaml
//	- path: /etc/kube-vip/prepare.sh
//	  owner: root:root
//	  permissions: "0700"
//	  contentFrom:
//	    secret:
//	      name: ${CLUSTER_NAME}-kube-vip
//	      key: kube-vip-prepare.sh
//	- path: /etc/kube-vip/cleanup.sh
//	  owner: root:root
//	  permissions: "0700"
//	  contentFrom:
//	    secret:
//	      name: ${CLUSTER_NAME}-kube-vip
//	      key: kube-vip-cleanup.sh
//	preKubeadmCommands:
//	- /etc/kube-vip/prepare.sh
//	postKubeadmCommands:
//	- /etc/kube-vip/cleanup.sh
//
// With an endpoint port other than 6443,
// initConfiguration.localAPIEndpoint.bindPort and joinConfiguration.controlPlane.localAPIEndpoint.bindPort have
// to be that port: ARP moves an address between nodes and translates no ports.
//
// # What the scripts are for
//
// kube-vip holds the address by a lease, for which it needs rights. Since Kubernetes 1.29, admin.conf has none
// while "kubeadm init" waits for the API server at that very address: only super-admin.conf has
// (kube-vip issue 684). The pod mounts a link, which the prepare script points at super-admin.conf only on the node
// that runs init, known by the kind of kubeadm configuration that was written there, elsewhere at admin.conf. The
// cleanup script points it at admin.conf once init has succeeded. The manifest never changes: another one would have
// kubelet replace the pod, and with one control plane the virtual IP would be away for 10 seconds. So the first
// node's kube-vip keeps its rights until it is next started.
//
// kube-vip talks to the API server of its own node by the name "kubernetes", which its generator maps to
// 127.0.0.1 with hostAliases. Kubelets ignore those for static pods on the host's network (kube-vip issue 692),
// so the prepare script writes a hosts file that is mounted over the pod's.
//
// # DaemonSet
//
// It is applied through the endpoint, so the first node has a static pod until the DaemonSet's pod runs there: the
// cleanup script installs a systemd unit that waits for it and removes the manifest. Both have one identity, the node's
// name, so the lease stays. On nodes that join, the prepare script removes the manifest. The DaemonSet's pods
// reach the API server of their own node by the same hosts file, with an account of their own: the Service "kubernetes"
// needs kube-proxy, which needs the endpoint.
//
// Both scripts can be repeated. A first argument is put before every path, for tests. They, and the manifest, go
// through cloud-init's jinja, so none may hold an opening double brace, brace and percent sign, or brace and hash.
//
// # Services
//
// [Services] returns another DaemonSet, which announces addresses of Services. Package cpi/kubevip assigns them.
package kubevip

//go:generate go -C ../../hack/kubevip run . -o ../../internal/kubevip/generated
