#!/usr/bin/env bash
# Runs ShellCheck on the given scripts. It is a distribution's package, not a Go module: where it is missing this says so and goes on.
set -o errexit -o nounset -o pipefail

if ! command -v shellcheck >/dev/null; then
	echo "shellcheck is not installed: shell scripts were not checked" >&2
	exit 0
fi
shellcheck -- "$@"
