#!/usr/bin/env bash
# Generates what is derived from Go code: deep copies, CRDs, webhook configurations, the manager's role, the reference pages.
# The same sources give the same bytes; `make verify` relies on it.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool() {
	go tool -modfile=tools.mod "$@"
}

tool controller-gen object paths=./api/...
tool controller-gen crd:crdVersions=v1,generateEmbeddedObjectMeta=false paths=./api/... output:crd:artifacts:config=config/crd/bases
tool controller-gen webhook paths=./internal/webhooks/... output:webhook:artifacts:config=config/webhook
tool controller-gen rbac:roleName=manager-role paths=. paths=./controllers/... output:rbac:artifacts:config=config/rbac
# What the README says of conformance is what the lists say.
listed=$(grep -cv '^#' test/conformance/govcd-must-pass.txt)
sed -i -E "s/passes [0-9]+ of the 494/passes $listed of the 494/" README.md

# The fields of each kind, at the end of its page.
types=$(mktemp --suffix .json)
trap 'rm "$types"' EXIT
tool crd-ref-docs --config=hack/api-reference/config.yaml --templates-dir=hack/api-reference/templates --renderer=markdown \
	--source-path=api/v1beta4 --output-path="$types" --log-level=ERROR
go run ./hack/api-reference -types "$types"
# Drawings of the documentation.
go run ./hack/pictures
# Metrics, conditions and flags.
go test ./docs -run "TestGenerated|TestTheRights" -update
go test ./cmd/vcdctl -run TheReference -update
# The alerts as the operator of Prometheus wants them.
{
	cat <<-'EOF'
		# Made from alerts.yaml by `make generate`.
		apiVersion: monitoring.coreos.com/v1
		kind: PrometheusRule
		metadata:
		  name: capvcd
		  namespace: capvcd-system
		spec:
	EOF
	sed -e '/^#/d' -e 's/^\(.\)/  \1/' config/monitoring/alerts.yaml
} >config/monitoring/prometheusrule.yaml
