#!/bin/sh
# Prepares a control plane node for kube-vip's static pod. Run it before kubeadm. It is idempotent.
# An argument is put before every path.
set -eu

# What runs kube-vip.
mode=StaticPod

root=${1:-}
folder=$root/etc/kube-vip

# use NAME: the pod mounts this kubeconfig of kubeadm's. A link, so that it can be changed without another pod.
use() {
	ln -sf "/etc/kubernetes/$1" "$folder/kubeconfig.new"
	mv "$folder/kubeconfig.new" "$folder/kubeconfig"
}

# kube-vip reaches the API server of its own node by the name kubernetes. Mounted over the pod's /etc/hosts.
mkdir -p "$folder"
printf '127.0.0.1 localhost kubernetes\n::1 localhost ip6-localhost ip6-loopback\n' >"$folder/hosts.new"
chmod 0644 "$folder/hosts.new"
mv "$folder/hosts.new" "$folder/hosts"

# Finds the configuration of "kubeadm init", which joining nodes do not have: cloud-init's place, then Ignition's,
# where that of "kubeadm join" has the same name.
config=
for file in "$root/run/kubeadm/kubeadm.yaml" "$root/etc/kubeadm.yml"; do
	if [ -f "$file" ] && grep -Eq '^kind: *"?(Init|Cluster)Configuration' "$file"; then
		config=$file
		break
	fi
done
if [ -z "$config" ]; then
	use admin.conf
	if [ "$mode" = DaemonSet ]; then
		rm -f "$root/etc/kubernetes/manifests/kube-vip.yaml"
		echo "kube-vip: this node joins a cluster, the DaemonSet runs here"
		exit 0
	fi
	echo "kube-vip: this node joins a cluster, using admin.conf"
	exit 0
fi

# kubeadm writes super-admin.conf since 1.29. Without a version in the configuration, 1.29 or later is assumed.
minor=$(sed -n 's/^kubernetesVersion: *"*v1\.\([0-9][0-9]*\).*/\1/p' "$config" | head -n 1)
if [ "${minor:-99}" -lt 29 ]; then
	use admin.conf
	echo "kube-vip: kubeadm 1.$minor has no super-admin.conf, using admin.conf"
	exit 0
fi

use super-admin.conf
echo "kube-vip: this node starts the cluster, using super-admin.conf until it has"
