// SPDX-License-Identifier: Apache-2.0

// Package kubevip renders the files and objects with which kube-vip announces the endpoint of a control plane. These are
// a static pod manifest and two scripts for the node, which are the data of the Secret <cluster>-kube-vip, and the
// objects of a DaemonSet. The package is pure: it depends neither on VCD nor on a Kubernetes client.
//
// The manifests are the output of kube-vip's own generator (hack/kubevip, a separate module), with the settings of a
// cluster applied to the typed objects. The image registry of the generator is replaced completely, so that clusters
// without internet access pull from their own registry. The rendered output is stored in testdata, where the tests of
// hack/kubevip read it with kube-vip's own parser.
//
// # Requirements for a KubeadmControlPlane
//
// kubeadmConfigSpec must contain this, with the name of the cluster for ${CLUSTER_NAME}:
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
// With an endpoint port other than 6443, initConfiguration.localAPIEndpoint.bindPort and
// joinConfiguration.controlPlane.localAPIEndpoint.bindPort must be set to that port: ARP moves an address between nodes
// and does not translate ports.
//
// # Purpose of the scripts
//
// kube-vip holds the address with a lease, for which it needs permissions. Since Kubernetes 1.29, admin.conf has none
// while "kubeadm init" waits for the API server at this very address. Only super-admin.conf has them (kube-vip issue
// 684). The pod mounts a link to a kubeconfig. The prepare script points it at super-admin.conf on the node that runs
// init, and at admin.conf on other nodes. It recognizes the node by the kind of its kubeadm configuration. The cleanup
// script points it at admin.conf once init has succeeded. The manifest never changes: the kubelet would replace the
// pod, and with one control plane the virtual IP would be unavailable for 10 seconds. Therefore kube-vip on the first
// node keeps its permissions until its next start.
//
// kube-vip connects to the API server of its own node by the name "kubernetes", which its generator maps to 127.0.0.1
// with hostAliases. Kubelets ignore hostAliases for static pods on the host network (kube-vip issue 692), so the
// prepare script writes a hosts file that is mounted over the hosts file of the pod.
//
// # DaemonSet
//
// The DaemonSet is applied through the endpoint, so the first node runs a static pod until the pod of the DaemonSet
// runs there. The cleanup script installs a systemd unit that waits for that pod and then removes the manifest. Both
// pods have the same identity, the name of the node, so the lease is kept. On nodes that join, the prepare script
// removes the manifest. The pods of the DaemonSet connect to the API server of their own node by the same hosts file,
// with a separate service account. They cannot use the Service "kubernetes", because it needs kube-proxy, which needs
// the endpoint.
//
// Both scripts are idempotent. Tests pass a first argument, which is prepended to every path. The scripts and the
// manifest pass through cloud-init's Jinja, so none may contain an opening double brace, a brace with a percent sign,
// or a brace with a hash.
//
// # Services
//
// [Services] returns another DaemonSet, which announces addresses of Services. Package cpi/kubevip assigns them.
package kubevip

//go:generate go -C ../../hack/kubevip run . -o ../../internal/kubevip/generated
