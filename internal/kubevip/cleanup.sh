#!/bin/sh
# Takes super-admin.conf away from kube-vip's static pod again. Run it after kubeadm. It is idempotent.
# An argument is put before every path. With the argument "handover" behind it, ends the static pod where a pod of the
# DaemonSet runs; fails where none does.
set -eu

# What runs kube-vip.
mode=StaticPod

root=${1:-}
link=$root/etc/kube-vip/kubeconfig
manifest=$root/etc/kubernetes/manifests/kube-vip.yaml

# static_pod prints the ids of the processes of the static pod. Those of the DaemonSet, and of a kube-vip of yours, serve
# metrics at another address.
static_pod() {
	for process in "$root"/proc/[0-9]*; do
		if [ "$(cat "$process/comm" 2>/dev/null || :)" = kube-vip ] &&
			grep -q "prometheus_server=127.0.0.1:2112" "$process/environ" 2>/dev/null; then
			echo "${process##*/}"
		fi
	done
}

# signal sends a signal to the processes of the static pod, of which there may be none.
signal() {
	for process in $(static_pod); do
		kill "-$1" "$process" 2>/dev/null || :
	done
}

# value prints the value of a variable of the static pod.
value() {
	sed -n "/- name: $1\$/{n;s/^ *value: *//p;}" "$manifest" | tr -d "\"'"
}

# kube asks the API server of this node: the virtual IP may be away.
kube() {
	kubectl --kubeconfig "$root/etc/kubernetes/admin.conf" --namespace kube-system \
		--server "https://127.0.0.1:$(value port)" --tls-server-name kubernetes "$@"
}

# renewed prints when the lease of the virtual IP was renewed last.
renewed() {
	kube get lease plndr-cp-lock --output 'jsonpath={.spec.renewTime}'
}

# virtual_ip_is_missing succeeds if this node holds the lease, and no interface has one of the addresses.
virtual_ip_is_missing() {
	holder=$(kube get lease plndr-cp-lock --output 'jsonpath={.spec.holderIdentity}') || return 1
	[ "$holder" = "$(uname -n)" ] || return 1
	for address in $(value address | tr , ' '); do
		found=$(ip -oneline address show to "$address" 2>/dev/null) || continue # the name of an address
		[ -n "$found" ] || return 0
	done
	return 1
}

# keep_static_pod lets the static pod go on. A pod of the DaemonSet takes the virtual IP away when it starts, and if it
# then does not become the leader, the static pod adds the address again only if it announces it by ARP. Else a new
# container of the static pod does.
keep_static_pod() {
	signal CONT
	virtual_ip_is_missing || return 0
	sleep 5 # A pod that becomes the leader adds it by then.
	virtual_ip_is_missing || return 0
	echo "kube-vip: the virtual IP is missing here, the static pod starts again" >&2
	signal KILL
}

# The static pod is stopped with SIGSTOP and then removed, so that the kubelet ends it with SIGKILL. With SIGTERM it would
# release the lease, which the pod of the DaemonSet holds under the same name, and take the virtual IP off the interface.
# The pod of the DaemonSet adds the address again only if it announces it by ARP.
if [ "${2:-}" = handover ]; then
	PATH=$PATH:/opt/bin
	trap keep_static_pod EXIT
	pod_ready=$(kube get pods --output 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}' \
		--selector app.kubernetes.io/name=kube-vip-ds --field-selector "spec.nodeName=$(uname -n),status.phase=Running")
	if [ "$pod_ready" != True ]; then
		echo "kube-vip: waiting for a pod of the DaemonSet on this node to be ready" >&2
		exit 1
	fi

	# Who renews the lease while the static pod stands still is the pod of the DaemonSet, or another node: then this
	# node does not hold the virtual IP.
	signal STOP
	sleep 1 # Until a renewal that the static pod had sent is stored.
	before=$(renewed)
	sleep 4 # The lease is renewed every two seconds.
	after=$(renewed)
	if [ "$after" = "$before" ]; then
		echo "kube-vip: waiting for the pod of the DaemonSet to renew the lease of the virtual IP" >&2
		exit 1
	fi

	rm -f "$manifest"
	trap - EXIT
	echo "kube-vip: the DaemonSet runs here, the static pod ends"
	exit 0
fi

# Cluster API's sign that kubeadm succeeded. Without it "kubeadm init" may be tried again, which needs the rights.
if [ ! -f "$root/run/cluster-api/bootstrap-success.complete" ]; then
	echo "kube-vip: kubeadm has not succeeded, nothing is changed" >&2
	exit 0
fi

# The node that started the cluster has a static pod until Cluster API has applied the DaemonSet. A unit, so that a
# reboot before that does not matter.
if [ "$mode" = DaemonSet ] && [ -f "$manifest" ]; then
	mkdir -p "$root/etc/systemd/system"
	cat >"$root/etc/systemd/system/kube-vip-handover.service" <<-'UNIT'
		[Unit]
		Description=Ends kube-vip's static pod where its DaemonSet runs
		ConditionPathExists=/etc/kubernetes/manifests/kube-vip.yaml
		StartLimitIntervalSec=0

		[Service]
		ExecStart=/etc/kube-vip/cleanup.sh "" handover
		Restart=on-failure
		RestartSec=10

		[Install]
		WantedBy=multi-user.target
	UNIT
	systemctl daemon-reload
	systemctl enable --now --no-block kube-vip-handover.service
fi

if [ "$(readlink "$link" || :)" != /etc/kubernetes/super-admin.conf ]; then
	exit 0
fi

# What runs keeps the file that it has mounted, and the virtual IP with it; the next start takes the other one.
ln -sf /etc/kubernetes/admin.conf "$link.new"
mv "$link.new" "$link"
echo "kube-vip: admin.conf from its next start"
