// SPDX-License-Identifier: Apache-2.0

package docs_test

// A setup contains shell commands that create and remove the prerequisites of a page.
type setup struct {
	before, after string
	// replace contains pairs of printed texts and replacements.
	replace []string
}

// setupPages returns the pages that create objects for other pages.
func setupPages() []string { return []string{"README.md"} }

// finalPages returns the pages that replace or delete these objects, in order.
func finalPages() []string {
	return []string{
		"docs/operate/drift.md", "docs/operate/upgrade-kubernetes.md", "docs/operate/delete-clusters.md",
	}
}

const (
	// shop is a Service of type LoadBalancer.
	shop = `kubectl create service loadbalancer shop --tcp=80 --dry-run=client -o yaml | kubectl apply -f - >/dev/null
`
	removeShop = "kubectl delete service shop --wait=false"
	// tenant creates a second identity in addition to the identity of the cluster.
	tenant = `kubectl get vcdidentity demo -o json | jq '{apiVersion, kind, metadata: {name: "tenant"}, spec}' | kubectl apply -f -
`
	removeTenant = "kubectl delete vcdidentity tenant"
	node         = `kubectl apply -f - >/dev/null <<<'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}'
`
	removeNode = "kubectl delete node node-1"
	// login sets the environment variables with the credentials for vcdctl.
	login = `export VCD_ORGANIZATION=acme VCD_USERNAME=capvcd VCD_PASSWORD=password VCD_CA_FILE=ca.pem
export VCD_SITE="$(kubectl get vcdcluster demo -o jsonpath='{.spec.site}')"
`
	// manifests writes the manifests of the cloud controller managers and replaces their placeholders.
	manifests = `go run ./addons/cmd/ccm-manifests -out . -version v2.0.0
sed -i 's,VCD_HOST,https://vcd.example.com,' vcloud-configmap.yaml
sed -i 's,API_URL,https://cloud.example.com/client/api,; s,= API_KEY,= key,; s,= SECRET_KEY,= key,' cloudstack-secret.yaml
sed -i 's,VCENTER,vc.example.com,; s,DATACENTER,dc,; s,: USER$,: user,; s,: PASSWORD$,: password,' vsphere-cloud-config.yaml
`
	saveCredentials    = "kubectl -n team-a get secret demo-credentials -o json | jq '{apiVersion, kind, metadata: {name: .metadata.name}, data}' > saved.json\n"
	restoreCredentials = "kubectl -n team-a replace -f saved.json"
)

func setups() map[string]setup {
	return map[string]setup{
		"README.md": {after: "kubectl wait cluster demo --for=condition=Available --timeout=200s"},
		"docs/networking/node-addresses.md": {before: `kubectl apply -f - <<EOF
{"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress",
 "metadata": {"name": "demo-md-0-x7k2p-0-0", "finalizers": ["example.com/held"]},
 "spec": {"claimRef": {"name": "demo-md-0-x7k2p-0-0"}, "address": "10.0.0.5", "prefix": 24,
  "poolRef": {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "nodes"}}}
EOF
`},
		"docs/operate/airgap.md": {before: manifests + "registry=registry.example.com\n"},
		"docs/networking/migrate-from-cpi.md": {
			before: manifests + `
kubectl apply -f vcloud-configmap.yaml -f vcloud-basic-auth.yaml
kubectl -n kube-system create secret generic vcloud-clusterid-secret --from-literal=clusterid=7a0e0d4c-1111-4222-8333-444455556666
`,
			after: "rm -r credentials",
		},
		"docs/networking/cloud-controller-manager.md": {
			before: manifests + `kubectl apply -f cloud-director-ccm.yaml
kubectl apply -f - <<EOF
{"apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet", "metadata": {"name": "cloud-director-crs"},
 "spec": {"clusterSelector": {"matchLabels": {"cni": "none"}}, "resources": [{"kind": "ConfigMap", "name": "ccm"}]}}
EOF
`,
			after:   "kubectl -n kube-system delete secret vcloud-basic-auth vcloud-ccm-proxy",
			replace: []string{"/tmp/ccm", "ccm"},
		},
		"docs/networking/migrate-from-cloudstack-provider.md": {before: manifests + "kubectl apply -f cloudstack-secret.yaml\n"},
		"docs/networking/cloudstack.md":                       {before: manifests + shop + node, after: removeShop + "\n" + removeNode},
		"docs/networking/cni.md": {
			before: "echo > kube-flannel.yml\n",
			after:  `kubectl apply -f "$SAMPLES/3"` + "\nkubectl delete clusterresourceset cni-flannel",
		},
		"docs/get-started/prerequisites.md":    {before: login},
		"docs/get-started/node-images.md":      {before: login},
		"docs/get-started/preflight-checks.md": {before: otherManifest},
		"docs/networking/control-plane-endpoint.md": {
			before: "export VCD_API_TOKEN_B64=eA== VCD_CCM_API_TOKEN_B64=eA== VCD_CCM_USERNAME_B64= VCD_CCM_PASSWORD_B64=\n",
			after:  "kubectl annotate vcdcluster demo infrastructure.cluster.x-k8s.io/keep-load-balancers-",
		},
		"docs/networking/load-balancers.md": {before: shop + manifests + "kubectl create namespace shop\n", after: removeShop},
		"docs/operate/gitops.md":            {before: "export CONTROL_PLANE_ENDPOINT_IP=192.168.100.200\nmkdir -p clusters/demo\n"},
		"docs/operate/install.md":           {before: saveCredentials, after: restoreCredentials},
		"docs/networking/proxy.md":          {before: "kubectl -n kube-system create configmap cluster-pod-proxy\n"},
		"docs/operate/vcd-portal.md": {
			before: `kubectl patch vcdcluster demo --type merge -p '{"spec":{"rde":{"mode":"Project"}}}'` + "\n",
		},
		"docs/operate/failure-domains.md":     {before: tenant, after: removeTenant},
		"docs/security/rotate-credentials.md": {before: saveCredentials, after: restoreCredentials},
		"docs/get-started/cluster-templates.md": {before: `export CONTROL_PLANE_ENDPOINT_IP=192.168.100.200 VCD_API_TOKEN_B64=eA== VCD_CCM_API_TOKEN_B64=eA== VCD_CCM_USERNAME_B64= VCD_CCM_PASSWORD_B64=
`},
		"docs/get-started/vcdsim.md": {
			before: `cat > vcd.yaml <<EOF
{"site": "https://127.0.0.1:8443", "org": "acme", "username": "capvcd", "password": "password", "caFile": "ca.pem"}
EOF
sed -i "s,https://127.0.0.1:8443,$(kubectl get vcdcluster demo -o jsonpath='{.spec.site}')," vcd.yaml
`,
			replace: []string{"SIM=172.18.0.1:8443", `SIM="$(kubectl get vcdcluster demo -o jsonpath='{.spec.site}' | cut -c9-)"`},
		},
		"docs/get-started/verify-site.md": {replace: []string{"verify-site --network", "verify-site --yes --network"}},
		"docs/networking/kube-vip-services.md": {
			before: "kubectl create deployment shop --image=registry.example.com/shop\n",
			after:  "kubectl delete deployment,service shop --wait=false",
		},
		"docs/networking/migrate-from-vsphere-cpi.md": {before: manifests + "kubectl apply -f vsphere-cloud-config.yaml\n"},
		"docs/networking/vsphere.md":                  {before: manifests + node, after: removeNode},
		"docs/reference/vcdctl.md": {
			before: otherManifest + tenant + `export VCD_PASSWORD=password VCD_CA_FILE=ca.pem
for name in mgmt-1 mgmt-2; do
  kubectl config set-context $name --namespace=team-a --cluster="$(kubectl config view -o jsonpath='{.contexts[0].context.cluster}')" \
    --user="$(kubectl config view -o jsonpath='{.contexts[0].context.user}')"
done
`,
			after: removeTenant,
		},
		// A VM that was declared gone but still exists remains in the vApp. keep-vapp allows the deletion of the
		// cluster nevertheless.
		"docs/operate/delete-clusters.md": {after: "kubectl annotate vcdcluster demo infrastructure.cluster.x-k8s.io/keep-load-balancers-"},
	}
}

// otherManifest writes the manifest of another cluster, which can coexist with the cluster of the README.
const otherManifest = `export CONTROL_PLANE_ENDPOINT_IP=192.168.100.210 VCD_API_TOKEN_B64="$(printf %s "$TOKEN" | base64 -w0)"
export VCD_CCM_API_TOKEN_B64="$(printf %s "$CCM_TOKEN" | base64 -w0)"
export VCD_CCM_USERNAME_B64= VCD_CCM_PASSWORD_B64=
clusterctl generate cluster other --infrastructure vcd --kubernetes-version v1.36.3 > cluster.yaml
`

const (
	containers   = "needs containers: the stack runs no pods"
	internet     = "downloads more than Go modules from the internet"
	registries   = "needs an image registry, and programs that are not Go modules"
	moves        = "needs a second management cluster: test/move tests clusterctl move"
	asRoot       = "needs root, and images whose build takes half an hour: make e2e-real runs it"
	byCI         = "runs in CI, or takes minutes to hours"
	placeholders = "contains … or IDs that users replace"
	adoption     = "needs a cluster of CAPVCD: tests in test/capvcd adopt some"
	forSites     = "creates VMs and rules at a site after a confirmation: tests of internal/verifysite cover it"
	releasing    = "publishes a release: make test-release runs everything except the push"
	unitTests    = "runs tests that make test includes"

	firstCluster = "first-cluster.md deletes the cluster with the same command"
	classPage    = "needs a cluster with a ClusterClass: test/templates covers it"
)

// notRun returns the reasons why blocks cannot run here, keyed by page and by the first line of the block.
func notRun() map[string]map[string]string {
	return map[string]map[string]string{
		"README.md": {
			"make quickstart   # creates a cluster on the simulator, with the real Cluster API": byCI,
			"clusterctl init --infrastructure vcd":                                              internet,
		},
		"AGENTS.md": {"make help                          # all targets": byCI},
		"docs/get-started/vcdsim-nodes.md": {
			"sudo apt-get install -y --no-install-recommends debootstrap debian-archive-keyring systemd-container":           asRoot,
			`sudo ./vcdsim-nodes console demo-control-plane-x7k2p     # what the VM wrote to its console; --follow for more`: asRoot,
			`sudo -E make quickstart-real`: asRoot,
			`sudo -E make e2e-real                                        # what CI runs`:                       asRoot,
			`sudo -E make conformance-kubernetes                    # 182 [Conformance] specs, and those below`: asRoot,
		},
		"docs/concepts/performance.md": {
			"make test-unit WHAT=./internal/vcd/...          # queue, polls":                                                             byCI,
			"go test ./vcdsim -run xxx -bench 10000 -benchmem    # the figures above":                                                    byCI,
			`make bench BENCH_FLAGS="-setup=machines -workers=9 -curve=10,100,300,1000 -rest=310s -timeout=130m -storage-versions-only"`: byCI,
		},
		"docs/operate/airgap.md": {
			"registry=registry.site.example/kubernetes":                                             registries,
			"make images VERSION=v2.0.0":                                                            registries,
			"make manifests images VERSION=v2.0.0":                                                  containers,
			"trivy sbom cluster-api-vcd-controller-linux-amd64.cdx.json     # or any other scanner": registries,
			"registry=registry.site.example/vmware-cloud-director   # the local container registry of the extension's server configuration, and its folder": registries,
		},
		"docs/operate/backup.md": {
			`clusterctl move --namespace team-a --to-directory backup/   # pauses the clusters, writes them to files, and resumes them here`: moves,
		},
		"docs/networking/cloud-controller-manager.md": {
			"helm install ccm out/release/v2.0.0/helm-cloud-provider-for-cloud-director-v2.0.0.tgz --namespace kube-system --values values.yaml": "needs the program helm: test/addons renders the chart with Helm's engine and applies it",
		},
		"docs/security/permissions.md": {
			`TOKEN=$(curl -s -H 'Accept: application/json;version=37.2' https://vcd.example.com/oauth/tenant/acme/token \`: placeholders,
		},
		"docs/networking/troubleshoot-load-balancers.md": {
			`kubectl describe service shop                                        # events: what could not be done, and what to change`:                            containers,
			`kubectl -n kube-system debug -it $(kubectl -n kube-system get pod -l app=vmware-cloud-director-ccm -o name | head -1) \`:                              containers,
			`curl -sk -X PUT -H "Authorization: Bearer $TOKEN" "https://127.0.0.1:10268/debug/vcd-wire-log?for=15m"   # DELETE ends it, GET returns the time left`: containers,
		},
		"docs/get-started/clusterclass.md": {
			"clusterctl generate cluster demo --infrastructure vcd --flavor topology --kubernetes-version v1.36.3 \\":                  "uses the name of the README's cluster: test/templates creates clusters with the ClusterClass",
			`kubectl patch clusterclass quick-start --type merge -p '{"spec":{"kubernetesVersions":["v1.34.3","v1.35.4","v1.36.3"]}}'`: "needs a cluster with an older version than the page creates",
		},
		"docs/operate/delete-clusters.md": {
			`kubectl delete cluster demo`: firstCluster,
		},
		"docs/get-started/preflight-checks.md": {
			`make build            # out/bin/vcdctl`: byCI,
		},
		"docs/get-started/first-cluster.md": {
			"git clone https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd && cd cluster-api-provider-vcd": internet,
			"clusterctl generate cluster demo --infrastructure vcd --kubernetes-version v1.36.3 > demo.yaml":                "summarizes the page before the setup",
		},
		"docs/operate/flatcar.md": {
			"export EXP_KUBEADM_BOOTSTRAP_FORMAT_IGNITION=true   # before clusterctl init; the feature gate of Cluster API's kubeadm providers": placeholders,
		},
		"docs/operate/orphaned-resources.md": {
			`vcdctl leaks --identity tenant --org acme --context mgmt-1,mgmt-2`: placeholders,
		},
		"docs/operate/move-clusters.md": {
			`clusterctl get kubeconfig my-cluster > my-cluster.kubeconfig`:                                                                        moves,
			`clusterctl move --namespace team-a --to-kubeconfig new-management.kubeconfig`:                                                        moves,
			`kubectl --kubeconfig old.kubeconfig --namespace team-a patch cluster my-cluster --type merge --patch '{"spec":{"paused":false}}'`:    moves,
			`kubectl --kubeconfig old.kubeconfig --namespace team-a get clusters --output custom-columns=NAME:.metadata.name,PAUSED:.spec.paused`: moves,
			`kubectl --kubeconfig new.kubeconfig --namespace team-a patch cluster my-cluster --type merge --patch '{"spec":{"paused":false}}'`:    moves,
			`kubectl --kubeconfig old.kubeconfig --namespace team-a delete secrets --selector cluster.x-k8s.io/cluster-name=my-cluster`:           moves,
		},
		"docs/operate/install.md": {
			`clusterctl init --infrastructure vcd`: internet,
			`clusterctl upgrade plan`:              internet,
			`kubectl get clusters,vcdclusters,vcdidentities -A   # delete the clusters first: nothing removes their objects in VCD later`:                               "removes the provider, which other pages need",
			`git clone https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd && cd cluster-api-provider-vcd`:                                             internet,
			`kubectl kustomize https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/config/monitoring | kubectl apply -f -`:                             internet,
			`kubectl create clusterrolebinding me-capvcd-debugger --clusterrole=capvcd-debugger --serviceaccount=capvcd-system:default   # a role of config/monitoring`: containers,
		},
		"docs/networking/proxy.md": {
			`clusterctl generate cluster demo --infrastructure vcd --flavor proxy …   # HTTP_PROXY_URL, HTTPS_PROXY_URL, PROXY_EXCEPTIONS`: placeholders,
			`kubectl create secret generic demo-proxy --from-literal=username=demo --from-literal=password="$PROXY_PASSWORD"`:              "needs a cluster with a proxy: tests of controllers/cluster create one",
			`ssh root@node cat /etc/dnf/dnf.conf`: "needs a node with dnf: tests of internal/nodeproxy check its files",
		},
		"docs/contribute/releases.md": {
			`git switch --detach v2.0.0                     # the tag, with a clean work tree`:          releasing,
			`git tag -s v2.0.0 && git push origin v2.0.0`:                                               releasing,
			`make recording                                       # runs make quickstart in a terminal`: byCI,
		},
		"docs/contribute/soak.md": {
			`make soak DURATION=2h CLUSTERS=10 SEED=7   # 15 minutes`: byCI,
		},
		"docs/contribute/tilt.md": {
			`git clone https://github.com/kubernetes-sigs/cluster-api && git clone https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd`: internet,
			`go run ./cmd/vcdsim --listen 0.0.0.0:8443 --control-token secret --ca-file vcdsim-ca.pem`:                                                   byCI,
		},
		"docs/operate/troubleshooting.md": {
			`clusterctl describe cluster demo --show-conditions all     # from the top: which object is not ready`: containers,
			`vcdctl support-bundle demo -n team-a -f demo.tar.gz`:                                                  containers,
		},
		"docs/get-started/migrate-from-capvcd.md": {
			`vcdctl adopt --dry-run                                  # result for each VM, vApp and load balancer`: adoption,
			`vcdctl adopt --dry-run`: adoption,
		},
		"docs/get-started/node-images.md": {
			`git clone https://github.com/kubernetes-sigs/image-builder && cd image-builder/images/capi`: internet,
		},
		"docs/operate/upgrade-kubernetes.md": {
			`kubectl patch cluster demo --type merge -p '{"spec":{"topology":{"version":"v1.36.4"}}}'`: classPage,
		},
		"docs/operate/update-in-place.md": {
			`export EXP_RUNTIME_SDK=true EXP_IN_PLACE_UPDATES=true   # before clusterctl init or upgrade; EXP_IN_PLACE_UPDATES also configures this provider`: internet,
			`kubectl patch vcdmachine demo-md-0-abcde --type=json -p '[{"op":"remove","path":"/spec/recordedState/restart"}]'`:                                "needs a machine whose update VCD rejected: tests of controllers/machine update one",
		},
		"docs/operate/upgrade-provider.md": {
			`git fetch --tags && git switch --detach v2.0.1         # in the clone that clusterctl.yaml refers to`:          internet,
			`clusterctl generate provider --infrastructure vcd:v2.0.0 | kubectl apply --server-side --force-conflicts -f -`: "replaces the manager, which other pages need",
		},
		"docs/get-started/vcdsim.md": {
			`go run github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cmd/vcdsim@latest`: internet,
			`clusterctl init --infrastructure vcd`:                                                  internet,
		},
		"docs/networking/migrate-from-vsphere-cpi.md": {
			`kubectl -n site-b auth can-i get secret/vc-b-credentials --as=system:serviceaccount:kube-system:cloud-controller-manager`: placeholders,
		},
		"docs/networking/migrate-from-cloudstack-provider.md": {
			`go test ./cpi/cloudstack -run TestObjectsOfTheOriginalProviderAreAdopted -v     # such as this one`: unitTests,
		},
		"docs/networking/migrate-from-cpi.md": {
			`go test ./internal/lb -run TestAdoption -v     # such as this one`: unitTests,
		},
		"docs/reference/vcdctl.md": {
			`vcdctl adopt --dry-run --config vcd.yaml --context mgmt-1`:                            adoption,
			`vcdctl support-bundle demo -n team-a -f demo.tar.gz`:                                  containers,
			`vcdctl purge --cluster-id 7a0e… --identity tenant --org acme --context mgmt-1,mgmt-2`: placeholders,
			`vcdctl verify-site --read-only --identity tenant --org acme`:                          forSites,
		},
		"docs/get-started/quickstart.md": {
			`make quickstart`: byCI,
		},
	}
}
