#!/usr/bin/env bash
# Proves that the rules on layers in .golangci.yml fire: it lays out a module of this project's path with one file per rule that
# breaks it and some that do not, and compares what depguard says. Stubs stand in for other modules: nothing is downloaded.
set -o errexit -o nounset -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
module=github.com/cluster-api-provider-vcd/cluster-api-provider-vcd
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Folder of the importing file, imported package, rule that must fire ("-" for none).
cases="
api/v1beta4          k8s.io/client-go/kubernetes                 api
api/v1beta4          $module/internal/vcd                        api
api/v1beta4          k8s.io/apimachinery/pkg/runtime             -
internal/edge         k8s.io/apimachinery/pkg/runtime             edge
internal/vcd         k8s.io/apimachinery/pkg/runtime             vcd
internal/vcd         sigs.k8s.io/controller-runtime              vcd
internal/vcd         $module/api/v1beta4                         vcd
internal/vcd/internal/api $module/internal/guestinfo             vcd
internal/vcd         $module/internal/vcd/internal/api           -
internal/vcd/internal/wire $module/internal/vcd/internal/transport vcdparts
internal/vcd/internal/wire $module/internal/vcd/internal/failure -
internal/vcd/internal/transport $module/internal/vcd/internal/login vcdtransport
internal/vcd/internal/transport $module/internal/siteproxy       -
internal/vcd/internal/login $module/internal/vcd/internal/api    vcdlogin
internal/vcd/internal/login $module/internal/vcd/internal/transport -
internal/vcd/internal/cache $module/internal/vcd/internal/api    vcdcache
internal/vcd         github.com/vmware/go-vcloud-director/v2/govcd -
internal/vcd         $module/internal/siteproxy                  -
internal/cloudstack  $module/internal/siteproxy                  -
internal/siteproxy   k8s.io/apimachinery/pkg/runtime             siteproxy
internal/siteproxy   $module/internal/guestinfo                  siteproxy
internal/cloudstack  k8s.io/apimachinery/pkg/runtime             cloudstack
internal/cloudstack  $module/internal/loadbalancer               cloudstack
cpi/cloudstack/cloudstacksim $module/internal/cloudstack         cloudstacksim
internal/guestinfo   $module/internal/vcd                        pure
internal/guestinfo/x k8s.io/client-go/kubernetes                 pure
internal/kubevip     sigs.k8s.io/controller-runtime              pure
internal/kubevip/x   $module/controllers                         pure
internal/providerid  $module/internal/vcd                        pure
internal/lb          $module/internal/vcd                        pure
internal/lb          $module/internal/loadbalancer               -
internal/loadbalancer k8s.io/apimachinery/pkg/runtime            loadbalancer
internal/loadbalancer $module/internal/lb                        loadbalancer
cpi/service          k8s.io/client-go/kubernetes                 pure
addons               k8s.io/client-go/kubernetes                 pure
vcdsim               $module/internal/vcd                        sim
vcdsim/guest         $module/internal/vcd                        sim
cmd/vcdsim           $module/internal/vcd                        sim
vcdsim/internal/store $module/vcdsim/internal/cloud              simleaves
vcdsim/internal/wire $module/vcdsim/internal/store               -
vcdsim/internal/api  $module/vcdsim/internal/compute             simbase
vcdsim/internal/documents $module/vcdsim/internal/network        simbase
vcdsim/internal/access $module/vcdsim/internal/documents         -
vcdsim/internal/machines $module/vcdsim/internal/api             simcloud
vcdsim/internal/machines $module/vcdsim/internal/cloud           -
vcdsim/internal/compute $module/vcdsim/internal/machines         -
vcdsim               github.com/vmware/go-vcloud-director/v2/govcd govcd
controllers          github.com/vmware/go-vcloud-director/v2/govcd govcd
.                    github.com/vmware/go-vcloud-director/v2/govcd govcd
controllers          $module/cpi                                 controllers
cmd/vcdctl           $module/controllers                         tools
cmd/vcdctl           $module/cpi                                 tools
internal/doctor      $module/controllers                         tools
cmd/vcdctl           $module/internal/vcd                        -
internal/rights      $module/internal/vcd                        pure
internal/topology    sigs.k8s.io/controller-runtime/pkg/client   pure
controllers/x        $module/cpi                                 controllers
internal/checks      $module/controllers                         checks
internal/checks      $module/internal/doctor                     checks
internal/checks      $module/internal/vcd                        -
internal/phases      $module/controllers                         phases
internal/phases      $module/internal/vcd                        phases
controllers/internal/session $module/controllers/internal/vapp   shared
controllers/internal/watches $module/controllers/internal/vapp   shared
controllers/internal/watches $module/controllers/internal/session -
controllers/internal/vapp $module/controllers/machine            kinds
controllers/internal/vapp $module/controllers/internal/session   -
controllers/machine  $module/controllers/cluster                 kinds
controllers/machine  $module/controllers/internal/session        -
controllers          $module/controllers/machine                 -
controllers/internal/controllertest $module/controllers/machine  -
controllers/internal/controllertest $module/vcdsim               -
cpi                  $module/controllers                         cpi
cpi/x                $module/controllers                         cpi
cpi/x                sigs.k8s.io/cluster-api/util                cpi
cpi                  $module/internal/vcd                        cpicore
cpi                  $module/internal/edge                       cpicore
cpi                  $module/internal/lb                         cpicore
cpi                  $module/cpi/vcd                             cpicore
cpi                  $module/internal/loadbalancer               -
cpi/service          $module/internal/loadbalancer               -
cpi/service          $module/internal/lb                         cpicore
cpi/cpitest          $module/cpi/vcd                             cpicore
cpi/service          $module/cpi/cloudstack                      cpicore
cpi/cpitest          github.com/onsi/gomega                      -
cpi/vcd              $module/cpi/cpitest                         product
cpi/cloudstack       $module/cpi/cloudstack/cloudstacksim        product
cpi/vsphere          $module/cpi/vsphere/vspheresim              product
cpi/vsphere          github.com/vmware/govmomi/simulator         product
cpi/cpitest/servicetest $module/cpi/service                      -
cpi/vcd              $module/internal/edge                       -
.                    $module/controllers                         -
.                    $module/vcdsim                              product
controllers          $module/vcdsim                              product
internal/webhooks    $module/vcdsim/guest                        product
internal/webhooks    $module/test/framework/stack                product
controllers          github.com/onsi/gomega                      product
internal/testtime    github.com/onsi/gomega                      -
cmd/vcdsim           $module/vcdsim                              -
test/framework/stack $module/vcdsim                              -
internal/webhooks    github.com/pkg/errors                       errors
test/framework/stack github.com/pkg/errors                       errors
"

stub() { # stub DIR: makes a package there, unless there is one.
	mkdir -p "$work/$1"
	local name=${1##*/}
	[[ $1 == . ]] && name=main
	[[ -f $work/$1/stub.go ]] || echo "package ${name//-/}" >"$work/$1/stub.go"
}

cp "$root/.golangci.yml" "$work/"
printf 'module %s\n\ngo 1.26.0\n' "$module" >"$work/go.mod"
declare -A replaced wanted
number=0
while read -r folder import rule; do
	[[ -n $folder ]] || continue
	stub "$folder"
	if [[ $import == "$module"/* ]]; then
		import=$import/leaf # a package of its own: cases must not import each other in circles
		stub "${import#"$module"/}"
	else
		other=$import
		for known in k8s.io/client-go k8s.io/apimachinery sigs.k8s.io/controller-runtime sigs.k8s.io/cluster-api \
			github.com/vmware/go-vcloud-director/v2 github.com/onsi/gomega github.com/pkg/errors; do
			[[ $import == "$known"* ]] && other=$known
		done
		stub ".stubs/$import"
		if [[ -z ${replaced[$other]:-} ]]; then
			replaced[$other]=yes
			version=v0.0.0
			[[ $other == */v2 ]] && version=v2.0.0
			printf 'module %s\n\ngo 1.26.0\n' "$other" >"$work/.stubs/$other/go.mod"
			printf 'require %s %s\nreplace %s => ./.stubs/%s\n' "$other" "$version" "$other" "$other" >>"$work/go.mod"
		fi
	fi
	number=$((number + 1))
	file=$folder/case$number.go
	[[ $folder == . ]] && file=case$number.go
	printf 'package %s\n\nimport _ "%s"\n' "$(sed -n 's/^package //p' "$work/$folder/stub.go")" "$import" >"$work/$file"
	wanted[$file]="$rule $import"
done <<<"$cases"

found=$work/found
# A cache of its own: the linter would answer with the paths of an earlier run.
export GOLANGCI_LINT_CACHE=$work/cache
linter=$(cd "$root" && go tool -n -modfile=lint.mod golangci-lint-kube-api-linter) # its path in Go's cache
(cd "$work" && "$linter" run --allow-parallel-runners --enable-only depguard --output.text.path=found --output.text.print-issued-lines=false \
	--output.text.colors=false --issues-exit-code=0 ./...)

status=0
for file in "${!wanted[@]}"; do
	read -r rule import <<<"${wanted[$file]}"
	said=$(grep "^$file:" "$found" || true)
	if [[ $rule == - && -n $said ]] || [[ $rule != - && $said != *"from list '$rule'"* ]]; then
		printf '%s imports %s: want rule %s, got: %s\n' "$file" "$import" "$rule" "${said:-nothing}" >&2
		status=1
	fi
done
((status == 0)) && echo "layers: ${#wanted[@]} cases as they should be"
exit "$status"
