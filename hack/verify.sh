#!/usr/bin/env bash
# Checks that everything generated, and the go.mod of each given folder, is up to date. It never changes a dirty work tree.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! git diff --quiet; then
	echo "verify compares with what is committed; commit or stage these first:" >&2
	git diff --stat >&2
	exit 1
fi

for module in "$@"; do
	if ! (cd "$module" && go mod tidy -diff); then
		echo "$module/go.mod is not tidy; run: make tidy" >&2
		exit 1
	fi
done

make generate
if ! git diff --exit-code || [[ -n "$(git ls-files --others --exclude-standard)" ]]; then
	git ls-files --others --exclude-standard >&2
	echo "what is generated is not up to date; run: make generate, and commit what it writes" >&2
	exit 1
fi
