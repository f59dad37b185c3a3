#!/usr/bin/env bash
# Checks that everything generated, and the go.mod of each given folder, is up to date. It never changes a dirty work tree.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! git diff --quiet; then
	echo "verify compares with what is committed; commit or stage these first:" >&2
	git diff --stat >&2
	exit 1
fi

# The modules are checked at the same time: with an empty module cache, a check mostly waits for downloads.
check_tidy() {
	if ! (cd "$1" && go mod tidy -diff); then
		echo "$1/go.mod is not tidy; run: make tidy" >&2
		return 1
	fi
}
export -f check_tidy
# shellcheck disable=SC2016 # The shell that xargs starts expands $1.
printf '%s\0' "$@" | xargs -0 -n 1 -P 6 bash -c 'check_tidy "$1"' check_tidy

make generate
if ! git diff --exit-code || [[ -n "$(git ls-files --others --exclude-standard)" ]]; then
	git ls-files --others --exclude-standard >&2
	echo "what is generated is not up to date; run: make generate, and commit what it writes" >&2
	exit 1
fi
