#!/usr/bin/env bash
# Runs a go test command, and the packages that failed once more: hack/retry-failed-tests.sh go test FLAGS ./PATTERN… FLAGS.
# It prints "FLAKY: package: tests" for each package that passes then, also to the file FLAKY_LOG if that is set, and fails if any
# fails again. Arguments that begin with "./" are the patterns of packages.
set -o errexit -o nounset -o pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT

status=0
"$@" 2>&1 | tee "$log" || status=$?
((status != 0)) || exit 0

# go test prints the tests that failed before the line of their package.
failed=$(awk '
	/^ *--- FAIL: / { tests = tests " " $3 }
	/^FAIL\t/ { split($0, field, "\t"); sub(/ .*/, "", field[2]); print field[2] ":" tests; tests = "" }
	/^ok / { tests = "" }
' "$log")
[[ -n $failed ]] || exit "$status" # Not a failed test: go test itself failed.

again=()
for argument in "$@"; do
	[[ $argument == ./* ]] || again+=("$argument")
	if [[ $argument == ./* && -z ${replaced:-} ]]; then
		replaced=yes
		mapfile -t -O "${#again[@]}" again < <(cut -d: -f1 <<<"$failed")
	fi
done

printf '\nFailed, trying once more:\n%s\n\n' "$failed"
status=0
"${again[@]}" 2>&1 | tee "$log" || status=$?
while IFS= read -r line; do
	if grep -q "^ok  	${line%%:*}	" "$log"; then
		printf 'FLAKY: %s\n' "$line" | tee -a "${FLAKY_LOG:-/dev/null}"
	fi
done <<<"$failed"
exit "$status"
