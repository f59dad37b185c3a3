// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"flag"
	"hash/fnv"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// govcdList is the file with the names of the SDK's tests that must pass.
const govcdList = "govcd-must-pass.txt"

var runOtherSDKs = flag.Bool("other-sdks", false, "also run the listed tests of other versions of the SDK (minutes each)")

// checkFormat is the output format of gopkg.in/check.v1.
var checkFormat = format{
	started: regexp.MustCompile(`(?m)^START: \S+ TestVCD\.(Test\w+)`),
	ended:   regexp.MustCompile(`(?m)^(PASS|FAIL|SKIP|MISS|PANIC): \S+ TestVCD\.(Test\w+)`),
	needs:   1,
}

// shards is the number of simulators among which the tests are distributed. Clients mostly sleep between polls of
// tasks.
const shards = 4

// An sdk is one version of VMware's Go SDK, compiled with its functional tests.
type sdk struct {
	tests     string // the test binary
	resources string // the folder with the files that the tests upload
}

// compileSDK compiles the tests of the SDK that the Go module in folder requires.
func compileSDK(t *testing.T, folder, module string) sdk {
	t.Helper()
	return sdk{
		tests:     compileTests(t, folder, module+"/govcd", "functional"),
		resources: filepath.Join(moduleDir(t, folder, module), "test-resources"),
	}
}

// TestGoVCloudDirector runs the functional tests of VMware's Go SDK.
func TestGoVCloudDirector(t *testing.T) {
	skipShort(t)
	client := compileSDK(t, ".", "github.com/vmware/go-vcloud-director/v2")
	got, exchanges := runShards(t, client, vcdsim.Version106, govcdNames(t, client.tests))
	checkList(t, govcdList, got)
	checkWire(t, exchanges)
}

// otherSDKs lists other versions of the SDK, with the release of VCD that their tests run against. The folder sdk
// contains a go.mod and a go.sum for each version.
var otherSDKs = []struct {
	version string
	vcd     vcdsim.Version
	failing map[string]string // listed tests that cannot pass, with the reason
}{
	{
		version: "v2.24.0",
		vcd:     vcdsim.Version105, // It sometimes requests API 36.0, which VCD 10.6 does not serve.
		failing: map[string]string{
			"Test_RdeAndRdeType": "expects a site without visible entity types; the simulator has those of Kubernetes clusters",
		},
	},
	{
		version: "v2.25.0",
		vcd:     vcdsim.Version106,
	},
	{
		version: "v3.0.0",
		vcd:     vcdsim.Version106,
		failing: map[string]string{
			"Test_OrgOidcSettingsValidationErrors": "expects an error text that this version of the client does not have",
		},
	},
}

// TestOtherSDKs runs the listed tests of other versions of the SDK. Tests that do not exist in a version are skipped.
func TestOtherSDKs(t *testing.T) {
	skipShort(t)
	if !*runOtherSDKs {
		t.Skip("takes minutes; runs with -args -other-sdks")
	}
	must := readList(t, govcdList)
	for _, tt := range otherSDKs {
		t.Run(tt.version, func(t *testing.T) {
			major, _, _ := strings.Cut(tt.version, ".")
			client := compileSDK(t, copyModule(t, tt.version), "github.com/vmware/go-vcloud-director/"+major)
			has := checkTests(t, client.tests, *only)
			names := slices.DeleteFunc(slices.Clone(must), func(name string) bool {
				return tt.failing[name] != "" || !slices.Contains(has, name)
			})

			got, exchanges := runShards(t, client, tt.vcd, names)

			t.Logf("%d of the %d listed tests exist in %s and can pass", len(names), len(must), tt.version)
			checkListed(t, names, got)
			checkWire(t, exchanges)
		})
	}
}

// copyModule creates a Go module with the go.mod and go.sum of an SDK version, and returns its folder.
func copyModule(t *testing.T, version string) string {
	t.Helper()
	folder := t.TempDir()
	for from, to := range map[string]string{version + ".mod": "go.mod", version + ".sum": "go.sum"} {
		data, err := os.ReadFile(filepath.Join("sdk", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, to), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// runShards runs the named tests in parallel against several simulators of a VCD release.
func runShards(t *testing.T, client sdk, release vcdsim.Version, names []string) (results, []vcdsim.Exchange) {
	t.Helper()
	got := results{}
	var exchanges []vcdsim.Exchange
	var mu sync.Mutex
	t.Run("shards", func(t *testing.T) {
		for i, shard := range shardNames(names) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				r, xs := runGovcd(t, client, release, shard)
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(got, r)
				exchanges = append(exchanges, xs...)
			})
		}
	})
	return got, exchanges
}

// resizes matches the tests that change the CPUs or the memory of the first VM. They have a simulator of their own, because
// other tests power on that VM.
var resizes = regexp.MustCompile(`^Test_(VM)?Change(CPU|Memory)`)

// shardNames distributes tests by a hash of their names, so that a test always shares its simulator with the same
// tests.
func shardNames(names []string) [][]string {
	out := make([][]string, shards+1)
	for _, name := range names {
		if resizes.MatchString(name) {
			out[shards] = append(out[shards], name)
			continue
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(name)) // never fails
		i := h.Sum32() % shards
		out[i] = append(out[i], name)
	}
	return slices.DeleteFunc(out, func(names []string) bool { return len(names) == 0 })
}

func runGovcd(t *testing.T, client sdk, release vcdsim.Version, names []string) (results, []vcdsim.Exchange) {
	t.Helper()
	s := start(t, checkFormat, govcdModel(), release)
	s.binary = client.tests
	// The tests write to their folder and read ../test-resources, so the working directory imitates this layout.
	root := s.dir
	s.dir = filepath.Join(root, "govcd")
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(client.resources, filepath.Join(root, "test-resources")); err != nil {
		t.Fatal(err)
	}
	s.env = []string{
		"GOVCD_CONFIG=" + writeYAML(t, root, "govcd.yaml", govcdConfig(s.sim.URL())),
		"TEST_VCD_API_TOKEN=capvcd-api-token",
	}
	got := s.run("-test.run", "^Test$", "-check.vv", "-check.f", `^TestVCD\.(`+strings.Join(names, "|")+`)$`)
	return got, s.wire.Exchanges()
}

// govcdNames returns the tests to run.
func govcdNames(t *testing.T, binary string) []string {
	t.Helper()
	if *only == "" && !*all {
		return readList(t, govcdList)
	}
	return checkTests(t, binary, *only)
}

// checkTests lists the tests of a binary whose names match an expression.
func checkTests(t *testing.T, binary, expression string) []string {
	t.Helper()
	var out []string
	list := run(t, ".", nil, binary, "-test.run", "^Test$", "-check.list", "-check.f", expression)
	for _, m := range regexp.MustCompile(`TestVCD\.(Test\w+)`).FindAllStringSubmatch(list, -1) {
		out = append(out, m[1])
	}
	return out
}

// govcdModel returns the Kubernetes tenant with the additional objects that these tests need.
func govcdModel() vcdsim.Model {
	m := vcdsim.K8sTenant()
	acme := &m.Orgs[1]
	acme.Catalogs[0].Templates[0].VMs[0].Name = "Photon OS" // the name of the first image in VMware's tests
	acme.Catalogs[0].Templates = append(acme.Catalogs[0].Templates, vcdsim.Template{
		Name:        "three-vms",
		Description: "A template of three VMs",
		VMs:         []vcdsim.TemplateVM{templateVM("first"), templateVM("second"), templateVM("third")},
	})
	acme.Catalogs[0].Media = []vcdsim.Media{{Name: "installer", Description: "An ISO image", Size: 1 << 20}}
	addNSX(&m)
	return m
}

// addNSX adds a VDC whose gateway has no load balancer, and a data center group with the other VDC, because some tests
// need a VDC that cannot join their groups. It removes load balancing, which the tests set up themselves.
func addNSX(m *vcdsim.Model) {
	block := func(gateway, from, to string) vcdsim.ExternalSubnet {
		return vcdsim.ExternalSubnet{
			Gateway: netip.MustParsePrefix(gateway),
			Pool:    []vcdsim.Range{{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)}},
		}
	}
	provider := vcdsim.ExternalNetwork{
		Name:        "provider-gateway",
		BackingName: "tier0-used",
		Subnets: []vcdsim.ExternalSubnet{
			block("1.1.1.1/24", "1.1.1.100", "1.1.1.200"),
			block("10.10.10.10/24", "10.10.10.100", "10.10.10.200"),
		},
	}
	uplink := func(from, to string) []vcdsim.Uplink {
		own := vcdsim.Range{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)}
		return []vcdsim.Uplink{{
			Network: provider.Name,
			Subnets: []vcdsim.UplinkSubnet{{
				Gateway:   provider.Subnets[0].Gateway,
				Addresses: []vcdsim.Range{own},
				Primary:   own.From,
			}},
		}}
	}
	acme := &m.Orgs[1]
	acme.Catalogs[0].Templates = append(acme.Catalogs[0].Templates, vcdsim.Template{
		Name:        "nsxt-node",
		Description: "Ubuntu 24.04 with Kubernetes 1.36.3",
		VDC:         "acme-nsxt",
		VMs:         []vcdsim.TemplateVM{templateVM("node")},
	})
	m.ExternalNetworks = append(m.ExternalNetworks, provider)
	m.ServiceEngineGroups = nil
	first := &acme.VDCs[0]
	first.EdgeGateways[0].LoadBalancer = nil
	first.EdgeGateways = append(first.EdgeGateways,
		vcdsim.EdgeGateway{Name: "group-gateway", Group: "acme-group", Uplinks: uplink("1.1.1.110", "1.1.1.119")})
	acme.VDCGroups = []vcdsim.VDCGroup{{Name: "acme-group", VDCs: []string{"acme-vdc"}}}
	acme.VDCs = append(acme.VDCs, vcdsim.VDC{
		Name:            "acme-nsxt",
		StorageProfiles: []vcdsim.StorageProfile{{Name: "standard", Default: true}, {Name: "fast"}},
		Policies:        first.Policies,
		EdgeGateways:    []vcdsim.EdgeGateway{{Name: "nsxt-gateway", Uplinks: uplink("1.1.1.120", "1.1.1.129")}},
		Networks: []vcdsim.Network{
			network("nsxt-routed", vcdsim.Routed, "192.168.120.1/24", "192.168.120.10", "192.168.120.99"),
			network("nsxt-isolated", vcdsim.Isolated, "192.168.121.1/24", "192.168.121.10", "192.168.121.99"),
		},
	})
}

func network(name string, kind vcdsim.NetworkType, gateway, from, to string) vcdsim.Network {
	return vcdsim.Network{
		Name:       name,
		Type:       kind,
		Gateway:    netip.MustParsePrefix(gateway),
		StaticPool: []vcdsim.Range{{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)}},
	}
}

func templateVM(name string) vcdsim.TemplateVM {
	return vcdsim.TemplateVM{
		Name:      name,
		OS:        "ubuntu64Guest",
		CPUs:      1,
		MemoryMiB: 512,
		DisksMiB:  []int64{16384},
		NICs:      1,
	}
}

type object map[string]any

// govcdConfig returns the configuration file of the tests.
func govcdConfig(url string) object {
	return object{
		"provider": object{
			"user":            "administrator",
			"password":        "password",
			"url":             url + "/api",
			"sysOrg":          "System",
			"maxRetryTimeout": 20,
		},
		"tenants": []object{
			{"user": "admin", "password": "password", "sysOrg": "acme"},
			{"user": "capvcd", "password": "password", "sysOrg": "acme"},
		},
		"vcd": object{
			"org": "acme",
			"vdc": "acme-vdc",
			"catalog": object{
				"name":                      "kubernetes",
				"nsxtBackedCatalogName":     "kubernetes",
				"description":               "Node images",
				"catalogItem":               "ubuntu-2404-kube-v1.36.3",
				"nsxtCatalogItem":           "nsxt-node",
				"catalogItemWithEfiSupport": "ubuntu-2404-kube-v1.36.3",
				"catalogItemDescription":    "Ubuntu 24.04 with Kubernetes 1.36.3",
				"catalogItemWithMultiVms":   "three-vms",
				"vmNameInMultiVmItem":       "second",
			},
			"network":         object{"network1": "nodes", "network2": "storage"},
			"storageProfile":  object{"storageProfile1": "standard", "storageProfile2": "fast"},
			"nsxt":            nsxConfig(),
			"externalNetwork": "internet",
			"nsxt_provider_vdc": object{
				"name":                   "provider",
				"storage_profile":        "standard",
				"storage_profile_2":      "fast",
				"network_pool":           "provider-pool",
				"placementPolicyVmGroup": "rack-a-vms",
			},
			"provider_vdc": object{
				"name":            "provider",
				"storage_profile": "standard",
				"network_pool":    "provider-pool",
			},
			"edgeGateway": "acme-vdc-gateway",
			"vimServer":   "vc1",
			"oidcServer":  object{"url": url, "wellKnownEndpoint": "oidc/.well-known/openid-configuration"},
		},
		"vsphere": object{"resourcePoolForVcd1": "spare-resources"},
		"logging": object{"enabled": false},
		"ova": object{
			"ovaPath":            "../test-resources/test_vapp_template.ova",
			"ovaChunkedPath":     "../test-resources/template_with_custom_chunk_size.ova",
			"ovaMultiVmPath":     "../test-resources/vapp_with_3_vms.ova",
			"ovaWithoutSizePath": "../test-resources/template_without_vmdk_size.ova",
			"ovfPath":            "../test-resources/test_vapp_template_ovf/descriptor.ovf",
		},
		"media": object{
			"mediaName":           "installer",
			"nsxtBackedMediaName": "installer",
			"mediaPath":           "../test-resources/test.iso",
			"mediaUdfTypePath":    "../test-resources/udf_test.iso",
		},
	}
}

func nsxConfig() object {
	return object{
		"vdc":                       "acme-nsxt",
		"routedNetwork":             "nsxt-routed",
		"isolatedNetwork":           "nsxt-isolated",
		"manager":                   "nsx1",
		"tier0router":               "tier0",
		"tier0routerVrf":            "tier0-vrf",
		"tier0routerInterface":      "uplink-1",
		"gatewayQosProfile":         "qos-100m",
		"externalNetwork":           "provider-gateway",
		"edgeGateway":               "nsxt-gateway",
		"nsxtImportSegment":         "segment-1",
		"nsxtImportSegment2":        "segment-2",
		"nsxtDvpg":                  "port-group",
		"nsxtEdgeCluster":           "edge-cluster-1",
		"vdcGroup":                  "acme-group",
		"vdcGroupEdgeGateway":       "group-gateway",
		"nsxtAlbControllerUrl":      "https://alb.example",
		"nsxtAlbControllerUser":     "admin",
		"nsxtAlbControllerPassword": "password",
		"nsxtAlbImportableCloud":    "nsxalb-cloud",
		"nsxtAlbServiceEngineGroup": "Default-Group",
		"ipDiscoveryProfile":        "ip-discovery",
		"macDiscoveryProfile":       "mac-discovery",
		"spoofGuardProfile":         "spoof-guard",
		"qosProfile":                "segment-qos",
		"segmentSecurityProfile":    "segment-security",
	}
}

func writeYAML(t *testing.T, dir, name string, content any) string {
	t.Helper()
	data, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
