#!/bin/sh
# Takes super-admin.conf away from kube-vip's static pod again. Run it after kubeadm, as often as you like.
# An argument is put before every path.
set -eu

root=${1:-}
manifest=$root/etc/kubernetes/manifests/kube-vip.yaml

if [ ! -f "$manifest" ] || ! grep -q '^ *path: /etc/kubernetes/super-admin\.conf$' "$manifest"; then
	exit 0
fi

# Cluster API's sign that kubeadm succeeded. Without it "kubeadm init" may be tried again, which needs the rights.
if [ ! -f "$root/run/cluster-api/bootstrap-success.complete" ]; then
	echo "kube-vip: kubeadm init has not succeeded, keeping super-admin.conf" >&2
	exit 0
fi

# The new manifest is made outside the folder that kubelet watches, and moved in whole.
new=$root/etc/kubernetes/.kube-vip.yaml.new
cp -p "$manifest" "$new"
sed 's|^\( *\)path: /etc/kubernetes/super-admin\.conf$|\1path: /etc/kubernetes/admin.conf|' "$manifest" >"$new"
mv "$new" "$manifest"
echo "kube-vip: back to admin.conf"
