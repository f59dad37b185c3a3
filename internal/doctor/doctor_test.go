// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/doctor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

func TestMain(m *testing.M) { testtime.Main(m) }

// manifest is a cluster of five machines that suits the tenant of the simulator. VIP and SPEC are replaced.
const manifest = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta4
kind: VCDCluster
metadata: {name: demo}
spec:
  site: https://vcd.example.com
  org: acme
  ovdc: acme-vdc
  ovdcNetwork: nodes
  identityRef: {kind: VCDIdentity, name: demo}
  controlPlaneEndpoint: {host: 192.168.100.200}
  controlPlaneLoadBalancer: {type: KubeVIP}
  cloudProvider: {mode: Managed, identityRef: {name: demo-ccm}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta4
kind: VCDMachineTemplate
metadata: {name: nodes}
spec: {template: {spec: {catalog: kubernetes, template: ubuntu-2404-kube-v1.36.3, sizingPolicy: small}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: demo-control-plane}
spec: {replicas: 3, machineTemplate: {spec: {infrastructureRef: {kind: VCDMachineTemplate, name: nodes}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: demo-md-0}
spec: {replicas: 2, template: {spec: {infrastructureRef: {kind: VCDMachineTemplate, name: nodes}}}}
`

// A site is a simulator, and a test's changes to it, to the manifest and to the login.
type site struct {
	*WithT

	sim      *vcdsim.Simulator
	config   vcdsim.Config
	manifest string
	login    vcd.Config
}

// A fault is a single problem.
type fault struct {
	name  string
	model func(*vcdsim.Model)  // before the simulator starts
	set   func(*vcdsim.Config) // likewise
	edit  func(*vcdsim.Editor) // of the running simulator
	rule  *vcdsim.Fault
	login func(*vcd.Config)
	text  []string // pairs of replacements in the manifest

	check, says, remedy string
}

// onGateway configures the endpoint on the edge gateway in the manifest, with a setting.
func onGateway(setting string) []string {
	return []string{
		"  controlPlaneEndpoint: {host: 192.168.100.200}\n",
		"",
		"{type: KubeVIP}",
		"{type: EdgeGateway, edgeGateway: {" + setting + "}}",
	}
}

func vdcOf(m *vcdsim.Model) *vcdsim.VDC { return &m.Orgs[1].VDCs[0] }

func imageOf(m *vcdsim.Model) *vcdsim.TemplateVM { return &m.Orgs[1].Catalogs[0].Templates[0].VMs[0] }

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// without removes a right from the role of the user.
func without(right string) func(*vcdsim.Model) {
	return func(m *vcdsim.Model) {
		for i := range m.Orgs[1].Roles {
			role := &m.Orgs[1].Roles[i]
			role.Rights = slices.DeleteFunc(slices.Clone(role.Rights), func(r string) bool { return r == right })
		}
	}
}

func start(t *testing.T, f fault) *site {
	t.Helper()
	s := &site{
		WithT:    NewWithT(t),
		config:   vcdsim.Config{Model: vcdsim.K8sTenant(), Seed: 1, Profile: vcdsim.Instant},
		manifest: manifest,
	}
	if f.set != nil {
		f.set(&s.config)
	}
	if f.model != nil {
		f.model(&s.config.Model)
	}
	var err error
	s.sim, err = vcdsim.New(s.config)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.sim.Start()).To(Succeed())
	t.Cleanup(func() { _ = s.sim.Close() })
	if f.edit != nil {
		s.sim.Edit(f.edit)
	}
	if f.rule != nil {
		s.sim.Faults().Add(*f.rule)
	}
	s.manifest = strings.NewReplacer(f.text...).Replace(s.manifest)
	s.login = vcd.Config{
		Site:        s.sim.URL(),
		Org:         "acme",
		CABundle:    s.sim.CA(),
		Credentials: vcd.Credentials{Username: "capvcd", Password: "password"},
	}
	if f.login != nil {
		f.login(&s.login)
	}
	return s
}

func (s *site) run(t *testing.T) doctor.Report {
	t.Helper()
	plan, err := readPlan(t, s.manifest)
	s.Expect(err).NotTo(HaveOccurred())
	return s.check(t, plan)
}

func (s *site) check(t *testing.T, plan doctor.Plan) doctor.Report {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{RequestTimeout: 5 * time.Second, RequestsPerSecond: 1000, Burst: 1000})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	report, err := doctor.Run(t.Context(),
		func(ctx context.Context) (*vcd.Session, error) { return pool.Session(ctx, s.login) }, plan)
	s.Expect(err).NotTo(HaveOccurred())
	for _, r := range s.sim.Requests() {
		s.Expect(r.Changes()).To(BeFalse(), "%s %s", r.Method, r.Path)
	}
	return report
}

func TestAHealthySiteHasNoFindings(t *testing.T) {
	s := start(t, fault{})

	report := s.run(t)

	s.Expect(report.Findings).To(BeEmpty())
	s.Expect(report.Skipped).To(BeEmpty())
	s.Expect(s.sim.Unhandled()).To(BeEmpty())
}

func TestTheDocumentedRoleHasNoFindings(t *testing.T) {
	s := start(t, fault{model: func(m *vcdsim.Model) {
		role := slices.IndexFunc(m.Orgs[1].Roles, func(r vcdsim.Role) bool { return r.Name == vcdsim.RoleClusterAuthor })
		m.Orgs[1].Roles[role].Rights = vcdsimtest.DocumentedRole(t, "../../docs/security/permissions.md", "capvcd")
	}})

	s.Expect(s.run(t).Findings).To(BeEmpty())
}

func TestAnEndpointOnAnEdgeGatewayHasNoFindings(t *testing.T) {
	for name, text := range map[string][]string{
		"the network's gateway":   onGateway(""),
		"one of its addresses":    {"192.168.100.200", "203.0.113.20", "{type: KubeVIP}", "{type: EdgeGateway}"},
		"by name, with the group": onGateway("name: acme-vdc-gateway, serviceEngineGroup: engines"),
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fault{model: func(m *vcdsim.Model) { *m = vcdsim.CloudProvider() }, text: text})

			s.Expect(s.run(t).Findings).To(BeEmpty())
		})
	}
}

// expectOnly expects that a report contains one fault and no other finding.
func (s *site) expectOnly(f fault, report doctor.Report) {
	text, err := json.MarshalIndent(report.Findings, "", " ")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(report.Findings).To(HaveLen(1), string(text))
	s.Expect(report.Findings[0].Check).To(Equal(f.check))
	s.Expect(report.Findings[0].Message).To(ContainSubstring(f.says))
	s.Expect(report.Findings[0].Remedy).To(ContainSubstring(f.remedy))
}

// Each fault is reported in exactly one line, with a remedy.
func TestEachFaultIsReportedOnce(t *testing.T) {
	for _, f := range slices.Concat(accessFaults(), vdcFaults(), networkFaults(), imageFaults(), gatewayFaults()) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, f)

			s.expectOnly(f, s.run(t))
		})
	}
}

func TestABusySiteIsNotReportedAsAMissingRight(t *testing.T) {
	for _, status := range []int{429, 503} {
		s := start(t, fault{rule: &vcdsim.Fault{
			Operation: "GET /cloudapi/1.0.0/orgVdcNetworks",
			Status:    status,
			Header:    map[string]string{"Retry-After": "60"},
		}})
		pool := vcd.NewPool(vcd.PoolOptions{RequestTimeout: 5 * time.Second, RequestsPerSecond: 1000, Burst: 1000})
		t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
		plan, err := readPlan(t, s.manifest)
		s.Expect(err).NotTo(HaveOccurred())

		report, err := doctor.Run(t.Context(),
			func(ctx context.Context) (*vcd.Session, error) { return pool.Session(ctx, s.login) }, plan)

		s.Expect(err).To(HaveOccurred())
		s.Expect(report.Findings).To(BeEmpty())
	}
}

// Every right on the page that a role of the simulator has is reported when it is missing, with its consequence.
func TestEachMissingRightIsReportedOnce(t *testing.T) {
	author := vcdsim.K8sTenant().Orgs[1].Roles[0].Rights
	tested := 0
	for _, row := range rights.Table() {
		for _, right := range row.Rights {
			if row.Need == rights.Sometimes || row.Need == rights.GrowDisks || row.Need == rights.Entity ||
				row.Need == rights.AntiAffinity || !slices.Contains(author, right) {
				continue
			}
			tested++
			t.Run(right, func(t *testing.T) {
				t.Parallel()
				s := start(t, fault{model: without(right)})

				report := s.run(t)

				s.Expect(report.Findings).To(HaveLen(1), fmt.Sprint(report.Findings))
				s.Expect(report.Findings[0].Message).To(And(ContainSubstring(fmt.Sprintf("%q", right)),
					ContainSubstring(rights.Plain(row.Without))))
				s.Expect(report.Findings[0].Remedy).To(ContainSubstring("add the right to the role"))
			})
		}
	}
	NewWithT(t).Expect(tested).To(BeNumerically(">=", 20))
}

func accessFaults() []fault {
	return []fault{
		{
			name:   "VCD is too old",
			set:    func(c *vcdsim.Config) { c.Version = vcdsim.Version103 },
			check:  "access",
			says:   "API version",
			remedy: "upgrade VMware Cloud Director",
		},
		{
			name:   "the certificate is not trusted",
			login:  func(c *vcd.Config) { c.CABundle = nil },
			check:  "access",
			says:   "not trusted",
			remedy: "--ca-file",
		},
		{
			name:   "the password is incorrect",
			login:  func(c *vcd.Config) { c.Credentials.Password = "wrong" },
			check:  "access",
			says:   "rejects the credentials",
			remedy: "correct the organization",
		},
		{
			name:   "the organization does not exist",
			login:  func(c *vcd.Config) { c.Org = "nowhere" },
			check:  "access",
			says:   "rejects the credentials",
			remedy: "correct the organization",
		},
		{
			name: "the API token is revoked",
			login: func(c *vcd.Config) {
				c.Credentials = vcd.Credentials{APIToken: "old"}
			},
			check:  "access",
			says:   "rejects the credentials",
			remedy: "new API token",
		},
		{
			name:   "the site is in maintenance",
			rule:   &vcdsim.Fault{Status: http.StatusServiceUnavailable, Body: vcdsim.BodyHTML},
			check:  "access",
			says:   "does not respond",
			remedy: "correct the address",
		},
		{
			name:   "the site refuses connections",
			login:  func(c *vcd.Config) { c.Site = "https://127.0.0.1:1" },
			check:  "access",
			says:   "does not respond",
			remedy: "correct the address",
		},
		{
			name:   "the address is invalid",
			login:  func(c *vcd.Config) { c.Site = "http://vcd" },
			check:  "access",
			says:   "must use https",
			remedy: "correct the address",
		},
		{
			name:   "leases expire",
			model:  func(m *vcdsim.Model) { m.Orgs[1].RuntimeLease = vcdsim.Duration(7 * 24 * time.Hour) },
			check:  "lease",
			says:   "runtime: 168h",
			remedy: "never expire",
		},
		{
			name: "a machine uses a nonexistent template",
			text: []string{
				"template: {spec: {infrastructureRef: {kind: VCDMachineTemplate, name: nodes",
				"template: {spec: {infrastructureRef: {kind: VCDMachineTemplate, name: other",
			},
			check:  "manifest",
			says:   `"other"`,
			remedy: "correct the manifest",
		},
		{
			name:   "the type of entities is not registered",
			text:   []string{"spec:\n  site:", "spec:\n  rde: {mode: Project}\n  site:"},
			check:  "entity",
			says:   "vmware:capvcdCluster",
			remedy: "ask the provider to register it",
			edit:   dropEntityTypes,
		},
		{
			name: "the right on anti-affinity is missing",
			text: []string{
				"sizingPolicy: small", "sizingPolicy: small, antiAffinity: Required",
			},
			model:  without("Organization vDC: VM-VM Affinity Edit"),
			check:  "rights",
			says:   "Organization vDC: VM-VM Affinity Edit",
			remedy: "add the right",
		},
		{
			name:   "the right on entities is missing",
			text:   []string{"spec:\n  site:", "spec:\n  rde: {mode: Project}\n  site:"},
			model:  without("vmware:capvcdCluster: Full Access"),
			check:  "entity",
			says:   "vmware:capvcdCluster: Full Access",
			remedy: "add the right",
		},
	}
}

func dropEntityTypes(e *vcdsim.Editor) {
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"} {
		e.DeleteDocument("urn:vcloud:type:vmware:capvcdCluster:" + version)
	}
}

func vdcFaults() []fault {
	return []fault{
		{
			name:   "the VDC does not exist",
			text:   []string{"ovdc: acme-vdc", "ovdc: none"},
			check:  "vdc",
			says:   `"none"`,
			remedy: "spec.ovdc",
		},
		{
			name:   "the VDC is disabled",
			model:  func(m *vcdsim.Model) { vdcOf(m).Disabled = true },
			check:  "vdc",
			says:   "disabled",
			remedy: "provider to enable it",
		},
		{
			name:   "the VM quota is too small",
			model:  func(m *vcdsim.Model) { vdcOf(m).VMQuota = 4 },
			check:  "capacity",
			says:   "capacity for 4 more VMs of 4, but 5 are planned",
			remedy: "VM quota",
		},
		{
			name:   "memory is too small",
			model:  func(m *vcdsim.Model) { vdcOf(m).Compute.MemoryLimit = 8192 },
			check:  "capacity",
			says:   "8192 MiB of memory left",
			remedy: "smaller sizing",
		},
		{
			name:   "memory is smaller than the spec requires",
			model:  func(m *vcdsim.Model) { vdcOf(m).Compute.MemoryLimit = 64 << 10 },
			text:   []string{"sizingPolicy: small", "memory: 16Gi"},
			check:  "capacity",
			says:   "65536 MiB of memory left of 65536, but 81920 are planned",
			remedy: "memory of the VDC",
		},
		{
			name:   "CPU is too small",
			model:  func(m *vcdsim.Model) { vdcOf(m).Compute.CPULimit = 5000 },
			check:  "capacity",
			says:   "5000 MHz",
			remedy: "smaller sizing",
		},
		{
			name:   "storage is too small",
			model:  func(m *vcdsim.Model) { vdcOf(m).StorageProfiles[0].LimitMiB = 50000 },
			check:  "capacity",
			says:   "50000 MiB left",
			remedy: "another storage profile",
		},
		{
			name: "no storage profile is the default",
			model: func(m *vcdsim.Model) {
				vdcOf(m).StorageProfiles[0].Default = false
			},
			check:  "storage",
			says:   "has no default",
			remedy: "spec.storageProfile",
		},
		{
			name: "the storage profile is disabled",
			model: func(m *vcdsim.Model) {
				vdcOf(m).StorageProfiles[0].Disabled = true
			},
			check:  "storage",
			says:   "is disabled",
			remedy: "enable",
		},
		{
			name:   "the storage profile does not exist",
			text:   []string{"sizingPolicy: small", "storageProfile: gold"},
			check:  "storage",
			says:   `"gold"`,
			remedy: "spec.storageProfile",
		},
		{
			name: "the storage profile of an additional disk does not exist",
			text: []string{
				"sizingPolicy: small}}}",
				"sizingPolicy: small, additionalDisks: [{size: 10Gi}, {size: 10Gi, storageProfile: gold}]}}}",
			},
			check:  "storage",
			says:   `"gold"`,
			remedy: "spec.additionalDisks[1].storageProfile",
		},
		{
			name:   "storage is too small for additional disks",
			model:  func(m *vcdsim.Model) { vdcOf(m).StorageProfiles[0].LimitMiB = 150_000 },
			text:   []string{"sizingPolicy: small}}}", "sizingPolicy: small, additionalDisks: [{size: 20Gi}]}}}"},
			check:  "capacity",
			says:   "150000 MiB left of 150000, but 204800 are planned",
			remedy: "another storage profile",
		},
		{
			name: "memory is too small for the default sizing policy of the VDC",
			model: func(m *vcdsim.Model) {
				vdcOf(m).Policies = []string{"large"}
				vdcOf(m).Compute.MemoryLimit = 64 << 10
			},
			text:   []string{", sizingPolicy: small", ""},
			check:  "capacity",
			says:   "65536 MiB of memory left of 65536, but 81920 are planned",
			remedy: "smaller sizing",
		},
		{
			name:   "the default sizing policy of the VDC sets the CPUs",
			model:  func(m *vcdsim.Model) { vdcOf(m).Policies = []string{"large"} },
			text:   []string{", sizingPolicy: small", ", cpus: 2"},
			check:  "policy",
			says:   "whose default sizing policy large defines them",
			remedy: "set spec.sizingPolicy",
		},
		{
			name:   "the sizing policy does not exist",
			text:   []string{"sizingPolicy: small", "sizingPolicy: huge"},
			check:  "policy",
			says:   `"huge"`,
			remedy: "spec.sizingPolicy",
		},
		{
			name:   "the sizing policy is a placement policy",
			text:   []string{"sizingPolicy: small", "sizingPolicy: rack-a"},
			check:  "policy",
			says:   "is a placement policy",
			remedy: "spec.sizingPolicy",
		},
		{
			name:   "the placement policy is not in the VDC",
			text:   []string{"sizingPolicy: small", "placementPolicy: rack-b"},
			check:  "policy",
			says:   `"rack-b"`,
			remedy: "spec.placementPolicy",
		},
		{
			name: "a vApp has the cluster's name",
			model: func(m *vcdsim.Model) {
				vdcOf(m).Fleet = vcdsim.Fleet{VApps: 2, VMsPerVApp: 1, Owner: "capvcd"}
			},
			edit:   func(e *vcdsim.Editor) { e.VApp("acme-vdc-vapp-000").Name = "demo" },
			check:  "name",
			says:   "does not belong to the cluster",
			remedy: "spec.vApp.name",
		},
	}
}

func networkFaults() []fault {
	node := func(m *vcdsim.Model) *vcdsim.Network { return &vdcOf(m).Networks[0] }
	vip := func(to string) []string { return []string{"192.168.100.200", to} }
	return []fault{
		{
			name:   "the network does not exist",
			text:   []string{"ovdcNetwork: nodes", "ovdcNetwork: none"},
			check:  "network",
			says:   `"none"`,
			remedy: "spec.ovdcNetwork",
		},
		{
			name: "the network is full",
			model: func(m *vcdsim.Model) {
				node(m).StaticPool = []vcdsim.Range{{From: addr("192.168.100.10"), To: addr("192.168.100.13")}}
			},
			check:  "network",
			says:   "4 free addresses of 4",
			remedy: "enlarge the static pool",
		},
		{
			name:   "the network has no static pool",
			model:  func(m *vcdsim.Model) { node(m).StaticPool = nil },
			check:  "network",
			says:   "no static pool",
			remedy: "add a static pool to the network",
		},
		{
			name: "no profile for the network with IPv6 only",
			model: func(m *vcdsim.Model) {
				node(m).Gateway = netip.MustParsePrefix("fd00:100::1/64")
				node(m).StaticPool = nil
				node(m).DHCPPool = nil
			},
			text:   []string{"sizingPolicy: small", "networks: [{addressSource: DHCP}]"},
			check:  "network",
			says:   "has IPv6 only, but the SLAAC profile of edge gateway",
			remedy: "enable DHCPv6 in mode SLAAC or DHCPv6",
		},
		{
			name:   "the network has no DHCP",
			model:  func(m *vcdsim.Model) { node(m).DHCPPool = nil },
			text:   []string{"sizingPolicy: small", "networks: [{addressSource: DHCP}]"},
			check:  "network",
			says:   "no visible DHCP range",
			remedy: "configure DHCP",
		},
		{
			name:   "an even number of control planes",
			text:   []string{"replicas: 3", "replicas: 2"},
			check:  "manifest",
			says:   "2 replicas, but etcd",
			remedy: "correct the manifest",
		},
		{
			name: "two control planes",
			text: []string{
				"kind: MachineDeployment\nmetadata: {name: demo-md-0}\nspec: {replicas: 2, template: {spec:",
				"kind: KubeadmControlPlane\n" +
					"metadata: {name: other}\nspec: {replicas: 1, machineTemplate: {spec:",
			},
			check:  "manifest",
			says:   "one control plane",
			remedy: "correct the manifest",
		},
		{
			name:   "an invalid virtual IP",
			text:   vip("a_c"),
			check:  "manifest",
			says:   "spec.controlPlaneEndpoint",
			remedy: "correct the manifest",
		},
		{
			name:   "an image of another version than the control plane",
			text:   []string{"spec: {replicas: 3,", "spec: {version: v1.35.4, replicas: 3,"},
			check:  "template",
			says:   "Kubernetes v1.36.3",
			remedy: "set an image with this version",
		},
		{
			name:   "the gateway of the endpoint does not exist",
			text:   onGateway("name: elsewhere"),
			check:  "gateway",
			says:   "elsewhere",
			remedy: "spec.controlPlaneLoadBalancer.edgeGateway.name",
		},
		{
			name:   "the address of the endpoint is not the gateway's",
			text:   []string{"192.168.100.200", "198.18.0.1", "{type: KubeVIP}", "{type: EdgeGateway}"},
			check:  "gateway",
			says:   "does not belong to edge gateway",
			remedy: "spec.controlPlaneEndpoint",
		},
		{
			name:   "the service engine group of the endpoint is not the gateway's",
			text:   onGateway("serviceEngineGroup: none"),
			check:  "gateway",
			says:   `"none" is not assigned`,
			remedy: "spec.controlPlaneLoadBalancer.edgeGateway.serviceEngineGroup",
		},
		{
			name:   "the network could not be created",
			model:  func(m *vcdsim.Model) { node(m).Failed = true },
			check:  "network",
			says:   "could not create network",
			remedy: "repair",
		},
		{
			name:   "the second NIC has no network",
			text:   []string{"sizingPolicy: small", "networks: [{name: nodes}, {name: dmz}]"},
			check:  "network",
			says:   `"dmz"`,
			remedy: "spec.networks",
		},
		{
			name:   "the virtual IP is in the static pool",
			text:   vip("192.168.100.20"),
			check:  "endpoint",
			says:   "static pool",
			remedy: "set another address",
		},
		{
			name:   "the virtual IP is leased by DHCP",
			text:   vip("192.168.100.160"),
			check:  "endpoint",
			says:   "DHCP range",
			remedy: "set another address",
		},
		{
			name:   "the virtual IP is outside the network",
			text:   vip("10.0.0.1"),
			check:  "endpoint",
			says:   "in no subnet",
			remedy: "set another address",
		},
		{
			name:   "the virtual IP is the gateway's",
			text:   vip("192.168.100.1"),
			check:  "endpoint",
			says:   "of the gateway",
			remedy: "set another address",
		},
		{
			name: "addresses of Services are in the static pool",
			text: []string{
				"  cloudProvider: {",
				"  loadBalancer: {kubeVIP: {addressRanges: [{startIP: 192.168.100.20, endIP: 192.168.100.30}]}}\n" +
					"  cloudProvider: {",
			},
			check:  "endpoint",
			says:   "overlap the static pool",
			remedy: "spec.loadBalancer.kubeVIP.addressRanges",
		},
		{
			name: "the virtual IP is in use",
			model: func(m *vcdsim.Model) {
				vdcOf(m).Fleet = vcdsim.Fleet{VApps: 2, VMsPerVApp: 1, Owner: "admin"}
			},
			edit: func(e *vcdsim.Editor) {
				nic := &e.VM("acme-vdc-vapp-000-000").NICs[0]
				nic.Address = "192.168.100.200"
				nic.Mode = "MANUAL"
			},
			check:  "endpoint",
			says:   "is the address of acme-vdc-vapp-000-000 in network nodes",
			remedy: "release it",
		},
	}
}

func imageFaults() []fault {
	return []fault{
		{
			name:   "the catalog does not exist",
			text:   []string{"catalog: kubernetes", "catalog: none"},
			check:  "template",
			says:   `catalog "none"`,
			remedy: "share the catalog",
		},
		{
			name:   "the template does not exist",
			text:   []string{"ubuntu-2404-kube-v1.36.3", "none"},
			check:  "template",
			says:   `template "none"`,
			remedy: "spec.template",
		},
		{
			name: "no template matches the selector",
			text: []string{
				"template: ubuntu-2404-kube-v1.36.3",
				`templateSelector: {namePattern: "flatcar-v{kubernetesVersion}*"}`,
			},
			check:  "template",
			says:   `a template that matches "name flatcar-v*" in catalog kubernetes`,
			remedy: "spec.templateSelector",
		},
		{
			name: "extra configuration without an identity that allows it",
			text: []string{"sizingPolicy: small}}}", `sizingPolicy: small, extraConfig: [{key: svga.present, value: "FALSE"}]}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta4
kind: VCDIdentity
metadata: {name: demo}
spec: {site: https://vcd.example.com, secretRef: {name: demo}, allowedExtraConfig: ["pciPassthru*"]}`},
			check:  "identities",
			says:   "does not allow these keys of spec.extraConfig: svga.present",
			remedy: "spec.allowedExtraConfig",
		},
		{
			name:   "IOPS without limits of the storage profile",
			text:   []string{"sizingPolicy: small}}}", "sizingPolicy: small, diskIOPS: 500}}}"},
			check:  "disk",
			says:   "spec.diskIOPS is 500, but storage profile standard has no IOPS limiting",
			remedy: "enable IOPS limiting",
		},
		{
			name:   "the template has no VM",
			text:   []string{"ubuntu-2404-kube-v1.36.3", "no-vm"},
			check:  "template",
			says:   "has no VM",
			remedy: "upload the image again",
		},
		{
			name: "the template is not ready",
			model: func(m *vcdsim.Model) {
				m.Orgs[1].Catalogs[0].Templates[0].Status = int(vcdsim.FailedCreation)
			},
			check:  "template",
			says:   "is not ready",
			remedy: "upload the image again",
		},
		{
			name:   "the template is Windows",
			model:  func(m *vcdsim.Model) { imageOf(m).OS = "windows2019srvNext_64Guest" },
			check:  "template",
			says:   "nodes require Linux",
			remedy: "upload an image",
		},
		{
			name:   "the template is 32-bit",
			model:  func(m *vcdsim.Model) { imageOf(m).OS = "ubuntuGuest" },
			check:  "template",
			says:   "64-bit",
			remedy: "upload an image",
		},
		{
			name:   "the template has no NIC",
			model:  func(m *vcdsim.Model) { imageOf(m).NICs = 0 },
			check:  "template",
			says:   "no NIC",
			remedy: "add a NIC",
		},
		{
			name:   "the template has no disk",
			model:  func(m *vcdsim.Model) { imageOf(m).DisksMiB = nil },
			check:  "template",
			says:   "no disk",
			remedy: "upload an image",
		},
		{
			name:   "the virtual hardware is old",
			model:  func(m *vcdsim.Model) { imageOf(m).HardwareVersion = "vmx-10" },
			check:  "template",
			says:   "hardware version 10",
			remedy: "upgrade the virtual hardware",
		},
		{
			name: "the virtual hardware is newer than the VDC's",
			model: func(m *vcdsim.Model) {
				imageOf(m).HardwareVersion = "vmx-99"
			},
			check:  "template",
			says:   "virtual hardware of template ubuntu-2404-kube-v1.36.3 is vmx-99, but VDC acme-vdc supports vmx-14",
			remedy: "use one of these versions",
		},
		{
			name:   "the requested virtual hardware is older than the template's",
			text:   []string{"sizingPolicy: small", "hardwareVersion: vmx-14"},
			check:  "template",
			says:   "VCD cannot downgrade it",
			remedy: "set at least this version",
		},
		{
			name:   "the requested virtual hardware is newer than the VDC's",
			text:   []string{"sizingPolicy: small", "hardwareVersion: vmx-99"},
			check:  "template",
			says:   "spec.hardwareVersion is vmx-99, but VDC acme-vdc supports vmx-14",
			remedy: "use one of these versions",
		},
		{
			name:   "the disk would shrink",
			text:   []string{"sizingPolicy: small", "diskSize: 10Gi"},
			check:  "disk",
			says:   "cannot shrink",
			remedy: "at least this size",
		},
		{
			name:   "the disk of a linked clone would be expanded",
			text:   []string{"sizingPolicy: small", "diskSize: 40Gi"},
			model:  without(rights.Consolidate),
			check:  "disk",
			says:   "disks can be expanded only after",
			remedy: "remove spec.diskSize",
		},
	}
}

func gatewayFaults() []fault {
	edge := func(m *vcdsim.Model) *vcdsim.EdgeGateway { return &vdcOf(m).EdgeGateways[0] }
	spaces := func(change func(*vcdsim.Model)) func(*vcdsim.Config) {
		return func(c *vcdsim.Config) {
			c.Model = vcdsim.IPSpaces()
			change(&c.Model)
		}
	}
	balancer := func(field string) []string {
		return []string{"spec:\n  site:", "spec:\n  loadBalancer: {" + field + "}\n  site:"}
	}
	return []fault{
		{
			name:   "the gateway could not be created",
			model:  func(m *vcdsim.Model) { edge(m).Failed = true },
			check:  "gateway",
			says:   "could not create edge gateway",
			remedy: "repair",
		},
		{
			name:   "the gateway has no load balancer",
			model:  func(m *vcdsim.Model) { edge(m).LoadBalancer = nil },
			check:  "gateway",
			says:   "no load balancer",
			remedy: "NSX Advanced Load Balancer",
		},
		{
			name: "the gateway has no service engine group",
			model: func(m *vcdsim.Model) {
				edge(m).LoadBalancer.Groups = nil
			},
			check:  "gateway",
			says:   "no service engine group",
			remedy: "assign one",
		},
		{
			name:   "the service engine group is not the gateway's",
			text:   balancer("serviceEngineGroup: gold"),
			check:  "gateway",
			says:   `"gold"`,
			remedy: "serviceEngineGroup",
		},
		{
			name: "the gateway has no address",
			model: func(m *vcdsim.Model) {
				only := addr("203.0.113.10")
				edge(m).Uplinks[0].Subnets[0].Addresses = []vcdsim.Range{{From: only, To: only}}
			},
			check:  "gateway",
			says:   "no free external address",
			remedy: "release addresses",
		},
		{
			name:   "a further gateway does not exist",
			text:   balancer("edgeGateways: [{name: x, edgeGateway: none, network: nodes}]"),
			check:  "gateway",
			says:   `"none"`,
			remedy: "spec.loadBalancer.edgeGateways",
		},
		{
			name:   "the IP Space is empty",
			set:    spaces(func(m *vcdsim.Model) { m.IPSpaces[0].RangeQuota = 0 }),
			check:  "gateway",
			says:   "free floating IP",
			remedy: "raise the quota",
		},
		{
			name:   "the IP Space is not the gateway's",
			set:    spaces(func(*vcdsim.Model) {}),
			text:   balancer("ipSpace: gold"),
			check:  "gateway",
			says:   `"gold"`,
			remedy: "ipSpace",
		},
	}
}

// The preset with 10,000 VMs takes less than 10 seconds and 60 calls.
func TestDoctorIsQuickOnALargeSite(t *testing.T) {
	s := start(t, fault{set: func(c *vcdsim.Config) { c.Model = vcdsim.Large() }})
	network := vcdsim.Large().Orgs[1].VDCs[0].Networks[0]
	s.manifest = strings.NewReplacer("ovdcNetwork: nodes", "ovdcNetwork: "+network.Name, "192.168.100.200",
		network.Gateway.Masked().Addr().Next().Next().String()).Replace(s.manifest)
	began := time.Now()

	report := s.run(t)

	calls := 0
	for _, n := range s.sim.Counters() {
		calls += n
	}
	t.Logf("%d calls in %s: %v", calls, time.Since(began), report.Findings)
	s.Expect(calls).To(BeNumerically("<=", 60))
	s.Expect(time.Since(began)).To(BeNumerically("<", 10*time.Second))
}
