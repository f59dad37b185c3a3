# Targets with a "##" are listed by `make help`. Tools are Go modules (tools.mod, lint.mod): nothing else is downloaded.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Packages to test in the root module and in test/. Packages that take long start first.
WHAT ?= ./...
WHAT_STACK ?= ./integration ./templates ./ccm ./move ./...
# Further flags of go test, such as GO_TEST_FLAGS='-run TestX -v'.
GO_TEST_FLAGS ?=
# For tests that build programs themselves: Go's cache of results does not know their sources.
AFRESH := -count=1
TIMEOUT ?= 30m
# Most memory of the unit tests is garbage: collecting it less often saves a fifth of the processor time.
TEST_GOGC ?= 400
# Packages of test/ that run at a time: each starts a management cluster.
STACKS ?= 2
# Wrapper of the go test commands in test/; CI sets it to hack/retry-failed-tests.sh.
TEST_WRAPPER ?=
# Ginkgo's flags for make e2e, such as -ginkgo.label-filter=upgrade.
E2E_FLAGS ?=
# Flags of make bench for one run instead of all.
BENCH_FLAGS ?=
# Versions of Kubernetes for make node-image, separated by commas, or all; and Debian's mirror, if not the machine's own.
KUBERNETES ?= v1.36.3
DEBIAN_MIRROR ?=
OUT ?= out
VERSION ?= v2.0.0-dev
# The manager's image; the others lie beside it.
IMAGE ?= ghcr.io/cluster-api-provider-vcd/cluster-api-vcd-controller
# Architectures of make images and make test-images, separated by commas.
ARCHITECTURES ?= amd64,arm64
# Version and date in programs and images: the same commit gives the same bytes.
COMMIT ?= $(shell git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null)
SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),0)

GO ?= go
VERSION_PKG := github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version
# Without gRPC's pages for debugging: their templates call methods by name, so the linker keeps every exported method.
# The cloud controller manager is a third smaller, and takes 20 MiB less memory.
TAGS := grpcnotrace
LDFLAGS = -X $(VERSION_PKG).Version=$(VERSION) -X $(VERSION_PKG).Commit=$(COMMIT)
TOOL := $(GO) tool -modfile=tools.mod
# An absolute path, because linting test/ runs there.
# golangci-lint with the linters that Kubernetes has for API types.
LINT := $(GO) tool -modfile=$(CURDIR)/lint.mod golangci-lint-kube-api-linter
# Nested modules, by folder; all but test/, hack/images/, hack/kubevip/, hack/nodeimage/, hack/recording/ and vcdsim/hypervisor/ only pin
# what is built from them.
MODULES := . $(patsubst %/go.mod,%,$(shell git ls-files '*/go.mod'))
SCRIPTS := $(shell git ls-files '*.sh') .ci/run

##@ Try it

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: quickstart
quickstart: ## Create a cluster on the simulator, with the real Cluster API, and show its progress.
	@echo "Compiling the quickstart. From empty caches that takes about two minutes."
	@cd test && $(GO) run ./quickstart

.PHONY: quickstart-real
quickstart-real: node-image ## As quickstart, but VMs boot and become real nodes, and a Service of type LoadBalancer answers; as root.
	@cd test && $(GO) run ./quickstart --real --workers 1

.PHONY: shell
shell: ## Open a shell in a VM of make quickstart-real, as root: make shell VM=demo-control-plane-x7k2p.
	@cd vcdsim/hypervisor && $(GO) run ./cmd/vcdsim-nodes shell $(VM)

.PHONY: run-sim
run-sim: ## Run the simulator of VMware Cloud Director; SIM_FLAGS are its flags.
	@$(GO) run ./cmd/vcdsim $(SIM_FLAGS)

##@ Build

.PHONY: build
build: ## Build the programs to out/bin.
	@mkdir -p $(OUT)/bin
	$(GO) build -tags $(TAGS) -ldflags "$(LDFLAGS)" -o $(OUT)/bin/ . ./cmd/...

.PHONY: images
images: ## Write the images of manager, CCM, vcdsim and the airgap carrier to out/images, for ARCHITECTURES, without a container engine.
	@cd hack/images && $(GO) run . --root $(CURDIR) --out $(abspath $(OUT))/images --version $(VERSION) --commit "$(COMMIT)" \
		--epoch $(SOURCE_DATE_EPOCH) --image $(IMAGE) --architectures $(ARCHITECTURES) $(PUSH)

.PHONY: push
push: ## As images, and push them to the registry of IMAGE, such as IMAGE=registry.example.com/team/cluster-api-vcd-controller.
	@$(MAKE) images PUSH=--push

.PHONY: node-image
node-image: ## Make the images that simulated VMs boot as Kubernetes nodes, into the build cache (root; half an hour the first time).
	@cd hack/nodeimage && $(GO) run . --root $(CURDIR) --kubernetes "$(KUBERNETES)" --mirror "$(DEBIAN_MIRROR)" \
		--version $(VERSION) --commit "$(COMMIT)" --epoch $(SOURCE_DATE_EPOCH) --image $(IMAGE)

.PHONY: generate
generate: ## Regenerate deep copies, CRDs, RBAC, reference pages, kube-vip's manifest.
	hack/generate.sh
	$(GO) generate ./...

.PHONY: manifests
manifests: ## Write the files of a release to out/release/VERSION.
	hack/release-manifests.sh $(OUT)/release $(VERSION) $(IMAGE)

.PHONY: chart
chart: ## Write the Helm chart of the cloud controller manager to out/release/VERSION.
	$(GO) run ./addons/cmd/ccm-chart -out $(OUT)/release/$(VERSION) -version $(VERSION) -epoch $(SOURCE_DATE_EPOCH)

.PHONY: cni
cni: ## Write network plug-ins for label cni of Clusters to out/release/VERSION (downloads them). CNI_REGISTRY is the registry of their images.
	hack/cni-manifests.sh $(OUT)/release/$(VERSION)

.PHONY: site
site: ## Write this documentation as a site with search to out/site, and check its links (needs Node.js and npm). RELEASES=--releases adds the tagged versions.
	rm -rf $(OUT)/site && hack/site.sh $(OUT)/site $(RELEASES)

.PHONY: test-site
test-site: site ## Open each page of the site in Chromium: no markup as text, no page wider than a phone, searches that find their page. SCREENSHOTS=folder keeps pictures.
	cd site && npm test

.PHONY: test-site-versions
test-site-versions: ## Build the site of a clone with tags, and test the versions and their selector in Chromium.
	hack/test-site-versions.sh

.PHONY: recording
recording: ## Record make quickstart in a terminal as the animated SVG of README and tutorial; AGAIN=-again renders the last recording.
	@cd hack/recording && $(GO) run . -root $(CURDIR) -cast $(abspath $(OUT))/recording/quickstart.cast \
		-out $(CURDIR)/docs/get-started/images/quickstart.svg $(AGAIN)

.PHONY: release
release: ## Write all files of release VERSION to out/release/VERSION, and its images to out/images.
	hack/release.sh $(OUT) $(VERSION)

##@ Test

.PHONY: test
test: test-unit test-kubevip test-recording test-hypervisor test-stack test-monitoring ## Run all tests: units, and those against real API servers and the simulator.

.PHONY: test-unit
test-unit: ## Run the tests of the root module; WHAT chooses packages.
	GOGC=$(TEST_GOGC) $(GO) test -timeout $(TIMEOUT) $(GO_TEST_FLAGS) $(WHAT)

.PHONY: test-kubevip
test-kubevip: ## Read rendered manifests of kube-vip with kube-vip's own parser.
	cd hack/kubevip && $(GO) test -timeout $(TIMEOUT) $(GO_TEST_FLAGS) ./...

.PHONY: test-stack
test-stack: stack ## Run the tests in test/ on etcd, kube-apiserver and Cluster API; WHAT_STACK chooses packages.
	cd test && $(TEST_WRAPPER) $(GO) test $(AFRESH) -p $(STACKS) -timeout $(TIMEOUT) $(GO_TEST_FLAGS) $(WHAT_STACK)

.PHONY: test-monitoring
test-monitoring: ## Test dashboard and alerts with the real metrics and Prometheus' own parser and engine.
	cd test/monitoring && $(TEST_WRAPPER) $(GO) test -timeout $(TIMEOUT) ./...

.PHONY: test-images
test-images: ## Build all images for ARCHITECTURES twice, unpack and check them; test what makes node images.
	cd hack/images && $(GO) test $(AFRESH) -timeout $(TIMEOUT) $(GO_TEST_FLAGS) . -archs=$(ARCHITECTURES)
	cd hack/images && $(GO) test -timeout $(TIMEOUT) $(GO_TEST_FLAGS) ./pack/...
	cd hack/nodeimage && $(GO) test -timeout $(TIMEOUT) $(GO_TEST_FLAGS) ./...

.PHONY: test-release
test-release: ## Make a release as its workflow does, but for the push, and check its files (four platforms: half an hour from empty caches).
	$(GO) test $(AFRESH) ./hack -timeout 2h -run 'TestARelease|TestEachProgram' -v -release

.PHONY: test-crash
test-crash: ## Kill the manager at random writes while clusters and machines come and go, and verify-site at each; ROUNDS, SEED (0: of the time).
	$(GO) test $(AFRESH) ./controllers/internal/edgeendpoint -run TestTheManagerDies -v -timeout 2h -args -crash-rounds=$(or $(ROUNDS),10) -crash-seed=$(or $(SEED),0)
	$(GO) test $(AFRESH) ./controllers/machine -run TestNoAddressIsLost -v -timeout 2h -args -claim-machines=300 -claim-seed=$(or $(SEED),0)
	$(GO) test $(AFRESH) ./internal/verifysite -run 'TestAnInterruptedRun|TestCleanUp' -v -timeout 2h -args -every-write

.PHONY: test-recording
test-recording: ## Test what makes the recording of the quickstart.
	cd hack/recording && $(GO) test -timeout $(TIMEOUT) $(GO_TEST_FLAGS) ./...

.PHONY: test-hypervisor
test-hypervisor: ## Test what boots VMs of the simulator, on Linux, without booting any.
	@if [[ $$($(GO) env GOOS) == linux ]]; then \
		cd vcdsim/hypervisor && $(GO) test -short -timeout $(TIMEOUT) $(GO_TEST_FLAGS) ./...; fi

.PHONY: test-adoption
test-adoption: stack ## Adopt clusters of CAPVCD in every state, and upgrade with clusterctl (20 minutes, root for one test); make test adopts one.
	cd test && $(GO) test $(AFRESH) ./capvcd -timeout $(TIMEOUT) -v $(GO_TEST_FLAGS) -args -all

.PHONY: test-ignition
test-ignition: ## Let the real Ignition read what guests get (root; builds it the first time, with libblkid-dev and pkg-config).
	cd test && $(TEST_WRAPPER) $(GO) test $(AFRESH) -timeout $(TIMEOUT) -v ./ignition -args -ignition

.PHONY: test-firsthour
test-firsthour: stack ## Make the typical mistakes of a first cluster, and print what is seen and after how many seconds (minutes).
	cd test && $(GO) test $(AFRESH) ./firsthour -timeout $(TIMEOUT) -v -firsthour

.PHONY: test-vms
test-vms: ## Boot VMs of the simulator as Linux systems (as root, after make node-image); IMAGES is another folder of images.
	cd vcdsim/hypervisor && $(GO) test $(AFRESH) -timeout $(TIMEOUT) $(GO_TEST_FLAGS) ./... $(if $(IMAGES),-images $(IMAGES))

.PHONY: test-vms-left
test-vms-left: ## Create and delete a booted VM 20 times and check that nothing is left.
	cd vcdsim/hypervisor && $(GO) test $(AFRESH) -timeout $(TIMEOUT) -run TestNothingIsLeft -v . -rounds 20 $(if $(IMAGES),-images $(IMAGES))

.PHONY: e2e
e2e: e2e-specs e2e-zones ## Run Cluster API's shared end-to-end specs on the simulator (E2E_FLAGS are Ginkgo's), and a cluster over three zones.

.PHONY: e2e-specs
e2e-specs: stack ## Run Cluster API's shared end-to-end specs alone.
	cd test && $(TEST_WRAPPER) $(GO) test ./e2e -timeout 40m -v -e2e $(E2E_FLAGS)

.PHONY: e2e-zones
e2e-zones: stack ## Create, scale, roll and delete a cluster over three zones.
	cd test && $(TEST_WRAPPER) $(GO) test ./integration -timeout $(TIMEOUT) -v -run TestAClusterOverThreeZones -zones

# The tests of booted clusters; TestAClusterOfRealNodes is that of CI. All of them: make e2e-real RUN=RealNodes
RUN ?= TestAClusterOfRealNodes

.PHONY: e2e-real
e2e-real: stack ## Test a cluster of real nodes (root, after make node-image; else it skips); RUN chooses other tests than that of CI.
	@if [[ $$(id -u) == 0 ]] && compgen -G "$${XDG_CACHE_HOME:-$$HOME/.cache}/cluster-api-provider-vcd/nodes/*.json" >/dev/null; then \
		$(MAKE) node-image KUBERNETES=$(if $(or $(findstring Upgrade,$(RUN)),$(findstring SelfHosted,$(RUN)),$(filter RealNodes,$(RUN))),all,$(KUBERNETES)); fi
	cd test && $(GO) test $(AFRESH) ./quickstart -timeout 2h -run '$(RUN)' -v -real-nodes $(REAL_FLAGS)

# Lists of Kubernetes' own tests, and how many run at a time.
LISTS ?= conformance,selection
PROCS ?= 4

.PHONY: conformance-kubernetes
conformance-kubernetes: stack ## Run Kubernetes' own tests that test/kubernetes lists in a cluster of real nodes (root, after make node-image).
	cd test/kubernetes && $(GO) test -c -ldflags='-s -w' -o $(CURDIR)/$(OUT)/kubernetes/e2e.test . && \
		$(GO) build -o $(CURDIR)/$(OUT)/kubernetes/ github.com/onsi/ginkgo/v2/ginkgo
	cd test && $(GO) test $(AFRESH) ./quickstart -timeout 3h -run TestKubernetesItself -v -real-nodes -kubernetes-procs=$(PROCS) \
		-kubernetes-tests=$(CURDIR)/$(OUT)/kubernetes -kubernetes-lists=$(LISTS)

.PHONY: bench
bench: stack ## Measure 50 and 100 clusters on the simulator (long); BENCH_FLAGS for a run of your own, such as -setup=machines.
	cd test && if [[ -n "$(BENCH_FLAGS)" ]]; then $(GO) run ./bench/cmd/bench $(BENCH_FLAGS); else \
		$(GO) run ./bench/cmd/bench -setup=machines && $(GO) run ./bench/cmd/bench -clusters=50 && $(GO) run ./bench/cmd/bench; fi

.PHONY: bench-ccm
bench-ccm: stack ## Measure the memory of the cloud controller manager with 500 nodes and 200 Services.
	cd test && $(GO) test ./ccm -run "TestManyNodes|TestMemoryOnOtherClouds" -v -ccm-bench

.PHONY: conformance
conformance: ## Run the tests of VMware's own clients, and CloudStack's, against the simulators.
	cd test/conformance && $(TEST_WRAPPER) $(GO) test $(AFRESH) -timeout $(TIMEOUT) -v ./...
	cd test && $(TEST_WRAPPER) $(GO) test -timeout $(TIMEOUT) ./cloudstackgo

.PHONY: conformance-sdks
conformance-sdks: ## Run the listed tests of older and newer versions of VMware's Go client against the simulator (ten minutes).
	cd test/conformance && $(TEST_WRAPPER) $(GO) test $(AFRESH) -timeout $(TIMEOUT) -v -run TestOtherSDKs . -args -other-sdks

.PHONY: conformance-terraform
conformance-terraform: ## Run VMware's Terraform provider against the simulator (minutes; builds it and OpenTofu the first time). TERRAFORM is another program to run.
	cd test/terraform && $(TEST_WRAPPER) $(GO) test $(AFRESH) -parallel 4 -timeout $(TIMEOUT) -v ./...

DURATION ?= 1h
SEED ?= 1

.PHONY: sim-soak
sim-soak: ## Let all clients of the simulator make, change and delete things at random for DURATION, from SEED; nothing may be left.
	cd test/conformance && $(TEST_WRAPPER) $(GO) test $(AFRESH) ./soak -timeout 0 -v -duration=$(DURATION) -seed=$(SEED)

# PACE is the number of simulated hours in an hour of real time.
CLUSTERS ?= 100
PACE ?= 8

.PHONY: soak
soak: DURATION = 24h
soak: stack ## Let CLUSTERS live for DURATION of simulated time (24h, three hours), from SEED, with faults and crashes; nothing may be lost, left or grow.
	cd test && $(GO) run ./soak -duration=$(DURATION) -clusters=$(CLUSTERS) -seed=$(SEED) -pace=$(PACE) $(SOAK_FLAGS)

.PHONY: stack
stack: ## Build the programs that tests in test/ run on (minutes the first time, then cached).
	cd test && $(GO) run ./framework/stack/cmd/stack build

.PHONY: test-docs
test-docs: stack ## Run the shell commands of README and documentation as they are printed.
	cd test && $(GO) test $(AFRESH) ./docs -timeout $(TIMEOUT) -v -as-printed

.PHONY: test-race
test-race: ## Run the tests of the root module with the race detector.
	CGO_ENABLED=1 $(GO) test -race -timeout $(TIMEOUT) $(GO_TEST_FLAGS) $(WHAT)

.PHONY: cover
cover: ## Measure the coverage of the root module; the report is out/cover.html.
	@mkdir -p $(OUT)
	$(GO) test -timeout $(TIMEOUT) -coverpkg=./... -coverprofile=$(OUT)/cover.out $(WHAT)
	$(GO) tool cover -html=$(OUT)/cover.out -o $(OUT)/cover.html
	$(GO) tool cover -func=$(OUT)/cover.out | tail -n 1

##@ Check

.PHONY: check
check: verify lint test test-images ## Run all checks that a change must pass.

.PHONY: lint
lint: ## Run the linters on Go, shell and workflows, and test the rules on layers.
	$(LINT) run --allow-parallel-runners ./...
	cd test && $(LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...
	cd hack/images && $(LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...
	cd hack/nodeimage && $(LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...
	cd hack/recording && $(LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...
	cd vcdsim/hypervisor && $(LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...
	hack/test-lint-layers.sh
	hack/shellcheck.sh $(SCRIPTS)
	$(GO) tool -modfile=lint.mod actionlint

.PHONY: fix
fix: ## Format, and apply fixes of linters.
	$(LINT) run --allow-parallel-runners --fix ./...
	cd test && $(LINT) run --allow-parallel-runners --fix --config $(CURDIR)/.golangci.yml ./...
	cd hack/images && $(LINT) run --allow-parallel-runners --fix --config $(CURDIR)/.golangci.yml ./...
	cd hack/nodeimage && $(LINT) run --allow-parallel-runners --fix --config $(CURDIR)/.golangci.yml ./...
	cd hack/recording && $(LINT) run --allow-parallel-runners --fix --config $(CURDIR)/.golangci.yml ./...
	cd vcdsim/hypervisor && $(LINT) run --allow-parallel-runners --fix --config $(CURDIR)/.golangci.yml ./...

.PHONY: verify
verify: ## Check that generated files and go.mod files are up to date, and that tests are patient.
	hack/verify.sh $(MODULES)
	$(GO) test ./internal/testtime

.PHONY: tidy
tidy: ## Tidy all modules.
	@for m in $(MODULES); do echo "go mod tidy: $$m"; (cd $$m && $(GO) mod tidy); done

.PHONY: vuln
vuln: ## Check called code for known vulnerabilities (needs the vulnerability database).
	$(GO) tool -modfile=lint.mod govulncheck ./...

##@ Other

.PHONY: clean
clean: ## Remove build output; caches stay.
	rm -rf $(OUT)
