#!/usr/bin/env bash
# Prints the notes of a release: its part of the changelog, and the subjects of all commits since the last one.
# usage: release-notes.sh VERSION
set -o errexit -o nounset -o pipefail

version=$1
head=HEAD
if git rev-parse --quiet --verify "refs/tags/$version" >/dev/null; then
	head=$version
fi
# The last tag that is no release candidate, unless this is one itself.
exclude=(--exclude='*-*')
[[ $version != *-* ]] || exclude=()
last=$(git describe --tags --abbrev=0 --match='v*' --exclude="$version" "${exclude[@]}" "$head" 2>/dev/null || true)

# The section whose title names the version; before the tag, what is not released yet.
section() {
	awk -v version="$1" '
		/^## / { found = index($0 " ", version " ") || index($0, version ":"); next }
		found
	' CHANGELOG.md
}
text=$(section "${version#v}")
[[ -n $text ]] || text=$(section Unreleased)

printf '# %s\n\n' "$version"
# Links that are relative here would lead nowhere from the page of the release.
source=https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/blob/$version
[[ -z $text ]] || printf '%s\n' "$(sed -e '/./,$!d' -e "s#](\(docs/[^)]*\))#]($source/\1)#g" <<<"$text")"
# Of the first release every commit is new.
if [[ -n $last ]]; then
	printf '\n## Commits since %s\n\n' "$last"
	git log --no-merges --reverse --format='- %s (%h)' "$last..$head"
fi
