#!/usr/bin/env bash
# Writes network plug-ins for clusters to choose: cni-NAME.yaml installs the plug-in in each cluster with label cni=NAME, and
# cni-images.txt lists the images of all plug-ins. It downloads the files of CNI_SOURCES and verifies their checksums.
# CNI_REGISTRY replaces the registries and folders of the images; CILIUM_VALUES is a file with more values of Cilium's chart.
# usage: cni-manifests.sh FOLDER
set -o errexit -o nounset -o pipefail

folder=$(realpath --canonicalize-missing "$1")
sources=$(realpath "${CNI_SOURCES:-$(dirname "${BASH_SOURCE[0]}")/cni/sources.txt}")
more_values=$(cat "${CILIUM_VALUES:-/dev/null}")
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp --directory)
trap 'rm -r "$work"' EXIT

main() {
	download calico "$work/calico.yaml"
	download cilium "$work/cilium.tgz"
	go build -C helm -ldflags='-s -w' -o "$work/helm" .

	# Organization networks route no pod addresses: all traffic between nodes takes the tunnel.
	sed 's/"CrossSubnet"/"Always"/' "$work/calico.yaml" >"$work/cni-calico"
	cilium >"$work/cni-cilium"
	cilium "$(cat cni/cilium-dual-stack.yaml)" >"$work/cni-cilium-dual-stack"
	refuse_secrets "$work"/cni-*

	mkdir -p "$folder"
	for manifest in "$work"/cni-*; do
		resource_set "$manifest" >"$folder/$(basename "$manifest").yaml"
	done
	images "$work"/cni-* >"$folder/cni-images.txt"
	ls "$folder"/cni-*
}

# download NAME FILE gets a file of the sources.
download() {
	local sum url
	if ! read -r _ sum url < <(grep "^$1 " "$sources"); then
		echo "$sources has no $1" >&2
		exit 1
	fi
	curl --fail --silent --show-error --location --output "$2" "$url"
	if ! sha256sum --check --status <<<"$sum  $2"; then
		echo "$url: the SHA-256 is not $sum, but $(sha256sum "$2" | cut -d' ' -f1)" >&2
		exit 1
	fi
}

# cilium VALUES... renders the chart.
cilium() {
	"$work/helm" cilium "$(cat cni/cilium.yaml)" "$@" "$more_values" <"$work/cilium.tgz"
}

# refuse_secrets FILES... fails if a manifest has a Secret.
refuse_secrets() {
	if grep --quiet '^kind: Secret' "$@"; then
		echo "a Secret would be the same in all clusters: in CILIUM_VALUES, use settings that create it in each cluster" >&2
		exit 1
	fi
}

# resource_set FILE prints a ClusterResourceSet that installs a manifest.
resource_set() {
	local name
	name=$(basename "$1")
	cat <<-EOF
		apiVersion: addons.cluster.x-k8s.io/v1beta2
		kind: ClusterResourceSet
		metadata:
		  name: $name
		spec:
		  clusterSelector:
		    matchLabels:
		      cni: ${name#cni-}
		  resources:
		    - kind: ConfigMap
		      name: $name
		  strategy: ApplyOnce
		---
		apiVersion: v1
		kind: ConfigMap
		metadata:
		  name: $name
		data:
		  manifest.yaml: |
	EOF
	mirrored "$1" | sed 's/^/    /'
}

# mirrored FILE prints a manifest with its images in CNI_REGISTRY.
mirrored() {
	if [[ -z ${CNI_REGISTRY:-} ]]; then
		cat "$1"
	else
		sed -E "s|^([- ]*image: \"?)[^\"]*/|\1$CNI_REGISTRY/|" "$1"
	fi
}

# images FILES... prints the images of manifests.
images() {
	sed -nE 's/^[- ]*image: "?([^"]*)"?$/\1/p' "$@" | sort --unique
}

main
