#!/usr/bin/env bash
# Writes everything that a release publishes but the images: what clusterctl downloads, manifests of the cloud controller
# manager, programs for people, bills of materials, notes and checksums. The images' archives are in FOLDER/images.
# usage: release.sh FOLDER VERSION
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(realpath --canonicalize-missing "$1")
version=$2
release=$folder/release/$version

if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
	echo "$version is no version, such as v2.0.0 or v2.1.0-rc.1" >&2
	exit 1
fi
series=${version#v}
if ! grep -A1 "major: ${series%%.*}\$" metadata.yaml | grep -q "minor: $(cut -d. -f2 <<<"$series")\$"; then
	echo "metadata.yaml does not list the series of $version" >&2
	exit 1
fi

rm -rf "$release"
make manifests OUT="$folder" VERSION="$version" >/dev/null
go run ./addons/cmd/ccm-manifests -out "$release" -version "$version"
make chart OUT="$folder" VERSION="$version" >/dev/null
make cni OUT="$folder" VERSION="$version" >/dev/null
make images OUT="$folder" VERSION="$version"
cp "$folder"/images/*.cdx.json "$release/"

commit=$(git describe --always --dirty --abbrev=40 --exclude='*')
package=github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version
for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}; do
	os=${platform%/*} arch=${platform#*/}
	for program in cmd/*/; do
		name=$(basename "$program")
		# By the name of its image, not of the folder.
		[[ $name != cpi ]] || name=cloud-provider-for-cloud-director
		CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -tags grpcnotrace \
			-ldflags "-s -w -X $package.Version=$version -X $package.Commit=$commit" \
			-o "$release/${name}_${os}_$arch" "./$program"
	done
done

hack/release-notes.sh "$version" >"$release/notes.md"
(cd "$release" && sha256sum -- * >SHA256SUMS)
ls -l "$release"
