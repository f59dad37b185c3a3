#!/usr/bin/env bash
# Tests the versions of the documentation site: builds the site of a clone with tags, and opens it in Chromium.
# SCREENSHOTS names a folder for pictures.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

state=$(git stash create) # changes of the work tree; nothing if there are none
git clone --quiet --shared --no-checkout . "$folder/clone"
cd "$folder/clone"
git config user.name test && git config user.email test@example.com
git checkout --quiet --detach "${state:-$(git -C "$root" rev-parse HEAD)}"
git tag --list | xargs --no-run-if-empty git tag --delete >"$folder/deleted"

# v0.9 has a page that later versions do not have; v0.10 is newer by number, and not by text.
printf '# Old page\n\nThis page is in v0.9 only.\n' >docs/get-started/old-page.md
sed -i 's|^## Get started$|&\n\n- [Old page](get-started/old-page.md)|' docs/README.md
git add docs && git commit --quiet --message "Add a page"
git tag v0.9.0
git commit --quiet --allow-empty --message "Fix something"
git tag v0.9.1
git rm --quiet docs/get-started/old-page.md && git checkout --quiet HEAD~2 -- docs/README.md && git commit --quiet --message "Remove a page"
git tag v0.10.0
git tag v0.11.0-rc.1

hack/site.sh "$folder/site" --releases
cd "$root/site"
node test-versions.mjs "$folder/site"
