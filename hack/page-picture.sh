#!/usr/bin/env bash
# Writes the picture of the simulator's page for the documentation. It needs chromium.
# usage: page-picture.sh FILE.png
set -o errexit -o nounset -o pipefail

file=$(realpath --canonicalize-missing "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(mktemp -d)
trap 'kill "$simulator" 2>/dev/null; rm -rf "$folder"' EXIT

go build -o "$folder/vcdsim" ./cmd/vcdsim
"$folder/vcdsim" --listen 127.0.0.1:18443 --preset large --clock 2026-03-01T00:00:00Z --ca-file "$folder/ca.pem" >"$folder/log" &
simulator=$!
until curl --silent --insecure --output /dev/null https://127.0.0.1:18443/_sim/; do
	kill -0 "$simulator"
	sleep 0.2
done
mkdir -p "$(dirname "$file")"
chromium --headless --no-sandbox --disable-gpu --ignore-certificate-errors --hide-scrollbars --window-size=1100,700 \
	--virtual-time-budget=5000 --user-data-dir="$folder/profile" --screenshot="$file" https://127.0.0.1:18443/_sim/ >"$folder/chromium" 2>&1
