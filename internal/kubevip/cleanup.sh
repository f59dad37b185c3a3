#!/bin/sh
# Takes super-admin.conf away from kube-vip's static pod again. Run it after kubeadm, as often as you like.
# An argument is put before every path.
set -eu

root=${1:-}
link=$root/etc/kube-vip/kubeconfig

if [ "$(readlink "$link" || :)" != /etc/kubernetes/super-admin.conf ]; then
	exit 0
fi

# Cluster API's sign that kubeadm succeeded. Without it "kubeadm init" may be tried again, which needs the rights.
if [ ! -f "$root/run/cluster-api/bootstrap-success.complete" ]; then
	echo "kube-vip: kubeadm init has not succeeded, keeping super-admin.conf" >&2
	exit 0
fi

# What runs keeps the file that it has mounted, and the virtual IP with it; the next start takes the other one.
ln -sf /etc/kubernetes/admin.conf "$link.new"
mv "$link.new" "$link"
echo "kube-vip: admin.conf from its next start"
