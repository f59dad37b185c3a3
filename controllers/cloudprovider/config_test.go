// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// omittedKeys maps the configuration keys that mode Managed never writes to the reasons.
var omittedKeys = map[string]string{
	"vcd.vdcs":                 "later: a cluster is in one VDC until deployment zones are there, which will say the others",
	"vcd.userOrg":              "identities are of the cluster's organization; a user name org/user says another",
	"vcd.userorg":              "as vcd.userOrg",
	"vcd.user":                 "credentials are in the Secret, which wins",
	"vcd.secret":               "credentials are in the Secret, which wins",
	"vcd.refreshtoken":         "credentials are in the Secret, which wins",
	"vcd.isZoneEnabledCluster": "does nothing",
	"vcd.caBundleFile":         "the bundle of the identity is written inline: no file has to be mounted",
	"vcd.requestsPerSecond":    "later: the default limit fits one cluster; VCD's own throttling is honoured",
	"vcd.burst":                "as vcd.requestsPerSecond",
	"vcd.inFlight":             "as vcd.requestsPerSecond",
	"vcd.requestTimeout":       "as vcd.requestsPerSecond",
	"loadbalancer.enableVirtualServiceSharedIP": "does nothing",
	"loadbalancer.ports.http":                   "does nothing",
	"loadbalancer.ports.https":                  "does nothing",
	"loadbalancer.edgeGateway":                  "the network of the nodes decides it",
	"loadbalancer.gateways[].network":           "the manager looks the network up, and writes its edge gateway",
	"nodes.vApps":                               "the cluster has one vApp, vAppName, or one for each machine",
	"nodes.vAppNamePrefix":                      "nodes in vApps of their own are found by their provider IDs, which the manager writes",
	"nodes.maxAge":                              "later: it trades calls for freshness, and its default keeps the budgets",
	"rde.enabled":                               "it follows rde.id and clusterid: what is no entity has none",
}

// fullCluster returns a cluster that sets every field about its cloud controller manager.
func fullCluster() *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{}
	c.Spec.Org = "acme"
	c.Spec.InfraID = "infra-1"
	c.Spec.ControlPlaneEndpoint.Host = "10.0.0.5"
	c.Spec.RDE = infrav1.RDESpec{Mode: infrav1.RDEProject, ID: "urn:vcloud:entity:vmware:capvcdCluster:1"}
	c.Status.OVDC = &infrav1.ResourceReference{ID: "urn:vcloud:vdc:1"}
	c.Status.OVDCNetwork = &infrav1.ResourceReference{Name: "nodes"}
	arm := infrav1.OneArmSpec{InternalRange: infrav1.AddressRange{StartIP: "10.9.0.1", EndIP: "10.9.0.9"}}
	c.Spec.LoadBalancer = infrav1.LoadBalancerSpec{
		Mode:               infrav1.LoadBalancerDisabled,
		ArmMode:            infrav1.ArmModeOneArm,
		OneArm:             arm,
		VIPSubnet:          "10.0.0.0/24",
		IPSpace:            "public",
		InternalSubnets:    []string{"10.4.0.0/24"},
		ServiceEngineGroup: "seg",
		Algorithm:          infrav1.AlgorithmRandom,
		CertificateAlias:   "wildcard",
		SourceRanges:       infrav1.SourceRangesFirewall,
		Members:            infrav1.LoadBalancerAllNodes,
		TLSPorts:           infrav1.TLSPortsAnnotated,
		Class: &infrav1.LoadBalancerClassSpec{
			Name:                 "example.com/vcd",
			UnclassifiedServices: infrav1.UnclassifiedIgnore,
		},
		KubeVIP: &infrav1.KubeVIPServices{
			Class:         "example.com/kube-vip",
			AddressRanges: []infrav1.AddressRange{{StartIP: "10.0.0.210", EndIP: "10.0.0.219"}},
		},
		EdgeGateways: []infrav1.LoadBalancerGateway{{
			Name:            "dmz",
			EdgeGateway:     "dmz",
			ArmMode:         infrav1.ArmModeOneArm,
			OneArm:          arm,
			VIPSubnet:       "10.1.0.0/24",
			IPSpace:         "dmz",
			InternalSubnets: []string{"10.5.0.0/24"},
		}},
		DriftIntervalSeconds: ptr.To[int32](300),
	}
	some := infrav1.AddressSelection{
		NICs:    []int32{0, 1},
		CIDRs:   []string{"10.0.0.0/8"},
		Exclude: []string{"10.9.0.0/24"},
	}
	c.Spec.CloudProvider.Nodes = infrav1.CloudProviderNodes{
		Region:      "north",
		DefaultZone: infrav1.DefaultZoneNone,
		Zones: []infrav1.CloudProviderZone{{
			Name:            "rack-a",
			Region:          "south",
			PlacementPolicy: "rack-a",
		}},
		Addresses: infrav1.CloudProviderAddresses{
			Families: []infrav1.AddressFamily{"IPv6", "IPv4"},
			Internal: some,
			External: some,
		},
	}
	return c
}

// rendered returns the configuration of a cluster whose identity sets everything.
func rendered(g *WithT, c *infrav1.VCDCluster) string {
	s := &scope{
		vcdCluster: c,
		cluster:    controllertest.NewCAPICluster(),
		gateways:   map[string]string{"dmz": "urn:vcloud:gateway:2"},
	}
	s.shared.ServiceAccount = true
	s.shared.Config = vcd.Config{Site: "https://vcd.example.com", CABundle: []byte("PEM"), Insecure: true}
	config, err := s.config()
	g.Expect(err).NotTo(HaveOccurred())
	raw, err := yaml.Marshal(config)
	g.Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// paths returns the paths of the values in a document, in the notation of the reference page.
func paths(at string, value any) []string {
	var all []string
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			all = append(all, paths(strings.TrimPrefix(at+"."+key, "."), inner)...)
		}
		return all
	case []any:
		for _, inner := range v {
			if _, ok := inner.(map[string]any); ok {
				all = append(all, paths(at+"[]", inner)...)
			}
		}
	}
	if len(all) == 0 {
		return []string{at}
	}
	return all
}

// TestEveryConfigurationKeyIsWrittenOrDeliberatelyOmitted compares the keys on the reference page with the keys that
// are written.
func TestEveryConfigurationKeyIsWrittenOrDeliberatelyOmitted(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/reference/ccm-config.md")
	g.Expect(err).NotTo(HaveOccurred())
	var known []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		known = append(known, row[1])
	}
	g.Expect(len(known)).To(BeNumerically(">", 50), "the page has another format")
	var document any
	g.Expect(yaml.Unmarshal([]byte(rendered(g, fullCluster())), &document)).To(Succeed())
	written := paths("", document)

	for _, path := range written {
		g.Expect(omittedKeys).NotTo(HaveKey(path), "is written: take it from the table")
		g.Expect(known).To(ContainElement(path), "is not a key of the program")
	}
	for _, path := range known {
		if _, ok := omittedKeys[path]; !ok {
			g.Expect(written).To(ContainElement(path),
				"is a key of the program: let the VCDCluster set it, or state in the table why not")
		}
	}
	for path := range omittedKeys {
		g.Expect(known).To(ContainElement(path), "is in the table, but not a key of the program")
	}
}

func TestUnsetFieldsKeepTheDefaultsOfTheCloudControllerManager(t *testing.T) {
	g := NewWithT(t)
	c := fullCluster()
	c.Spec.ControlPlaneEndpoint.Host = "api.example.com"
	c.Spec.LoadBalancer = infrav1.LoadBalancerSpec{
		Mode:         infrav1.LoadBalancerEnabled,
		SourceRanges: infrav1.SourceRangesRefuse,
		Members:      infrav1.LoadBalancerWorkers,
	}
	c.Spec.CloudProvider.Nodes = infrav1.CloudProviderNodes{}
	var document map[string]any
	g.Expect(yaml.Unmarshal([]byte(rendered(g, c)), &document)).To(Succeed())

	g.Expect(document["loadbalancer"]).To(Equal(map[string]any{"network": "nodes"}))
	g.Expect(document).NotTo(HaveKey("nodes"))
}

func TestSetFieldsAreWritten(t *testing.T) {
	g := NewWithT(t)

	text := rendered(g, fullCluster())

	for _, line := range []string{
		"algorithm: RANDOM", "certAlias: wildcard", "class: example.com/vcd", "classOnly: true", "driftInterval: 5m0s",
		"enabled: false", "includeControlPlane: true",
		"ipSpace: public", "sourceRanges: true", "edgeGateway: urn:vcloud:gateway:2", "region: north",
		"placementPolicy: rack-a", "vdc: urn:vcloud:vdc:1",
	} {
		g.Expect(text).To(ContainSubstring(fmt.Sprintf("%s\n", line)))
	}
}

func TestTheCloudControllerManagerReadsTheWrittenConfiguration(t *testing.T) {
	g := NewWithT(t)
	c := fullCluster()
	c.Spec.LoadBalancer.Mode = infrav1.LoadBalancerEnabled

	_, _, err := vcdconfig.Parse([]byte(strings.Replace(rendered(g, c), "caBundle: PEM", "caBundle: ''", 1)),
		ccmconfig.Environment{})

	g.Expect(err).NotTo(HaveOccurred())
}

func TestAnInvalidSpecIsReportedAtOnce(t *testing.T) {
	g := NewWithT(t)
	c := fullCluster()
	c.Spec.LoadBalancer.VIPSubnet = "x"
	c.Spec.LoadBalancer.EdgeGateways[0].OneArm = infrav1.OneArmSpec{InternalRange: infrav1.AddressRange{StartIP: "y"}}
	s := &scope{vcdCluster: c, cluster: controllertest.NewCAPICluster()}

	_, err := s.config()

	g.Expect(err).To(MatchError(And(
		ContainSubstring("spec.loadBalancer.vipSubnet: "),
		ContainSubstring("spec.loadBalancer.edgeGateways[dmz].oneArm.internalRange: "),
	)))
}

func TestImageOfACluster(t *testing.T) {
	const managers = "ghcr.io:443/acme/ccm:v2.0.0"
	tests := []struct{ name, own, want string }{
		{"the manager's image", "", managers},
		{"another registry, with the manager's version", "registry:5000/mirror/ccm", "registry:5000/mirror/ccm:v2.0.0"},
		{"another version", "registry:5000/mirror/ccm:v2.0.1", "registry:5000/mirror/ccm:v2.0.1"},
		{"a digest", "registry/ccm@sha256:0123", "registry/ccm@sha256:0123"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(imageOf(tt.own, managers)).To(Equal(tt.want))
		})
	}
}
