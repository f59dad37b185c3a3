#!/usr/bin/env bash
# Writes what clusterctl downloads of a release: the provider's components, metadata.yaml and the cluster templates.
# usage: release-manifests.sh FOLDER VERSION IMAGE
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$1/$2
image=$3:$2

mkdir -p "$folder"
components=$(go tool -modfile=tools.mod kustomize build config/default)
# config/manager names the image with the tag "dev", as a build from a work tree, and the registry of the project.
from=$(grep --only-matching 'image: [^ ]*:dev$' <<<"$components") || true
registry=$(grep --only-matching 'VCD_CLOUD_PROVIDER_REGISTRY:=[^}]*}' <<<"$components") || true
if [[ -z $from || $from == *$'\n'* ]]; then
	echo "config/manager does not have exactly one image with the tag dev" >&2
	exit 1
fi
if [[ -z $registry || $registry == *$'\n'* ]]; then
	echo "config/manager does not have exactly one default of VCD_CLOUD_PROVIDER_REGISTRY" >&2
	exit 1
fi
components=${components//"$from"/"image: $image"}
# The cloud controller manager lies beside the manager.
components=${components//"$registry"/"VCD_CLOUD_PROVIDER_REGISTRY:=$(dirname "$3")}"}
printf '%s\n' "$components" >"$folder/infrastructure-components.yaml"
cp metadata.yaml templates/cluster*.yaml config/monitoring/alerts.yaml config/monitoring/dashboard.json "$folder/"
go tool -modfile=tools.mod kustomize build config/monitoring >"$folder/monitoring.yaml"
# clusterctl takes a release from a path that ends in PROVIDER/VERSION/FILE.
ln -sfn . "$1/infrastructure-vcd"
ls "$folder"
