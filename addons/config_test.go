package addons

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
)

// TestTheConfigurationIsWhatTheProgramReads holds what is rendered against the strict reader of the cloud controller manager.
func TestTheConfigurationIsWhatTheProgramReads(t *testing.T) {
	g := NewWithT(t)
	raw := must(Config{
		VCD: VCDConfig{Host: "https://vcd.example.com", Org: "acme", VDC: "urn:vcloud:vdc:1", Insecure: true, ServiceAccountSecret: ServiceAccountName},
		LoadBalancer: LoadBalancerConfig{
			Network: "nodes", VIPSubnet: "10.0.0.0/24", EngineGroup: "seg", OneArm: &OneArm{StartIP: "10.9.0.1", EndIP: "10.9.0.9"},
		},
		ClusterID: "infra-1", VApp: "demo",
	}.YAML())

	got, warnings, err := vcdconfig.Parse(raw, ccmconfig.Environment{ReadFile: func(string) ([]byte, error) { return nil, errors.New("no file") }})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(ConsistOf(ContainSubstring("insecureSkipVerify")), "no key that is not known or does nothing")
	g.Expect(got.VCD.Host).To(Equal("https://vcd.example.com"))
	g.Expect(got.VCD.InsecureSkipVerify).To(BeTrue())
	g.Expect(got.ClusterID).To(Equal("infra-1"))
	g.Expect(got.VCD.ServiceAccountSecret).To(Equal("vcloud-service-account"))
	g.Expect(got.LoadBalancer.OneArm).To(Equal(&vcdconfig.Range{StartIP: netip.MustParseAddr("10.9.0.1"), EndIP: netip.MustParseAddr("10.9.0.9")}))
	g.Expect(got.LoadBalancer.EngineGroup).To(Equal("seg"))
	g.Expect(got.LoadBalancer.VIPSubnet).To(Equal(netip.MustParsePrefix("10.0.0.0/24")))
	g.Expect(got.Nodes.VApps).To(Equal([]string{"demo"}))
}

func TestWishesAreWhatTheProgramReads(t *testing.T) {
	g := NewWithT(t)
	some := &SelectionConfig{NICs: []int32{0, 1}, CIDRs: []string{"10.0.0.0/8"}, Exclude: []string{"10.9.0.0/24"}}
	raw := must(Config{
		VCD: VCDConfig{Host: "https://vcd.example.com", Org: "acme", VDC: "urn:vcloud:vdc:1"},
		LoadBalancer: LoadBalancerConfig{
			Network: "nodes", IPSpace: "public", Algorithm: "RANDOM", Certificate: "wildcard", SourceRanges: true, IncludeControlPlane: true,
			Class: "example.com/vcd", ClassOnly: true, DriftInterval: "5m0s",
			Gateways: []GatewayConfig{{Name: "dmz", EdgeGateway: "urn:vcloud:gateway:2", VIPSubnet: "10.1.0.0/24", IPSpace: "dmz", OneArm: new(DefaultOneArm())}},
		},
		ClusterID: "infra-1",
		Nodes: &NodesConfig{
			Region: "north", Zones: []ZoneConfig{{Name: "rack-a", Region: "south", VDC: "urn:vcloud:vdc:1", PlacementPolicy: "rack-a"}},
			Addresses: &AddressesConfig{Families: []string{"IPv6", "IPv4"}, Internal: some, External: some},
		},
	}.YAML())

	got, warnings, err := vcdconfig.Parse(raw, ccmconfig.Environment{})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(got.LoadBalancer).To(Equal(vcdconfig.LoadBalancer{
		EdgeGateway: vcdconfig.EdgeGateway{Network: "nodes", IPSpace: "public"}, Algorithm: "RANDOM", CertAlias: "wildcard", SourceRanges: true, IncludeControlPlane: true,
		Class: "example.com/vcd", ClassOnly: true, DriftInterval: metav1.Duration{Duration: 5 * time.Minute},
		Gateways: []vcdconfig.Gateway{{Name: "dmz", EdgeGateway: vcdconfig.EdgeGateway{
			ID: "urn:vcloud:gateway:2", VIPSubnet: netip.MustParsePrefix("10.1.0.0/24"), IPSpace: "dmz",
			OneArm: &vcdconfig.Range{StartIP: netip.MustParseAddr("192.168.8.2"), EndIP: netip.MustParseAddr("192.168.8.100")},
		}}},
	}))
	chosen := vcdconfig.Selection{NICs: []int{0, 1}, CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Exclude: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/24")}}
	g.Expect(got.Nodes).To(Equal(vcdconfig.Nodes{
		Region: "north", Zones: []vcdconfig.Zone{{Name: "rack-a", Region: "south", VDC: "urn:vcloud:vdc:1", PlacementPolicy: "rack-a"}},
		Addresses: vcdconfig.Addresses{
			Families: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}, Internal: chosen, External: chosen,
		},
		MaxAge: metav1.Duration{Duration: 30 * time.Second},
	}))

	nothing, _, err := vcdconfig.Parse(must(Config{
		VCD: VCDConfig{Host: "https://vcd.example.com", Org: "acme", VDC: "urn:vcloud:vdc:1"}, LoadBalancer: LoadBalancerConfig{Enabled: new(bool)},
	}.YAML()), ccmconfig.Environment{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(nothing.LoadBalancer.Disabled()).To(BeTrue())
}
