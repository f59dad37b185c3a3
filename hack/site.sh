#!/usr/bin/env bash
# Writes the documentation as a site with search: the work tree as version main, with --releases also the newest release of each
# minor version, from its tag. It needs Node.js and npm.
# usage: site.sh FOLDER [--releases]
set -o errexit -o nounset -o pipefail

mkdir -p "$1"
folder=$(realpath "$1")
releases=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
trees=$(mktemp -d)
trap 'rm -rf "$trees"; git worktree prune' EXIT

# build writes the site of a source tree, as a version whose links lead to a ref of the repository.
build() {
	local tree=$1 version=$2 ref=$3
	rm -rf "${folder:?}/$version"
	(cd "$tree/site" && npm ci --ignore-scripts && SITE_FOLDER="$folder" SITE_VERSION="$version" SITE_REF="$ref" npm run build)
}

build . main main
if [[ $releases == --releases ]]; then
	minors=$(git tag --list 'v*' | sed -nE 's/^(v[0-9]+\.[0-9]+)\.[0-9]+$/\1/p' | sort --unique)
	for minor in $minors; do
		tag=$(git tag --list "$minor.*" --sort=-version:refname | grep -E '^v[0-9.]+$' | head -n 1)
		git worktree add --detach "$trees/$minor" "$tag"
		build "$trees/$minor" "$minor" "$tag"
	done
fi
node site/assemble.mjs "$folder"
