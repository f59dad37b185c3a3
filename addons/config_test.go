package addons

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/config"
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

	got, err := config.Parse(raw, config.Environment{ReadFile: func(string) ([]byte, error) { return nil, errors.New("no file") }})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Warnings).To(ConsistOf(ContainSubstring("insecureSkipVerify")), "no key that is not known or does nothing")
	g.Expect(got.Site).To(Equal("https://vcd.example.com"))
	g.Expect(got.Insecure).To(BeTrue())
	g.Expect(got.ClusterID).To(Equal("infra-1"))
	g.Expect(got.Login.ServiceAccountSecret).To(Equal("vcloud-service-account"))
	g.Expect(got.Balancer.OneArm).To(Equal(&config.Range{From: netip.MustParseAddr("10.9.0.1"), To: netip.MustParseAddr("10.9.0.9")}))
	g.Expect(got.Balancer.EngineGroup).To(Equal("seg"))
	g.Expect(got.Balancer.VIPSubnet).To(Equal(netip.MustParsePrefix("10.0.0.0/24")))
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

	got, err := config.Parse(raw, config.Environment{})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Warnings).To(BeEmpty())
	g.Expect(got.Balancer).To(Equal(config.Balancer{
		Gateway: config.Gateway{Network: "nodes", IPSpace: "public"}, Algorithm: "RANDOM", Certificate: "wildcard", SourceRanges: true, IncludeControlPlane: true,
		Class: "example.com/vcd", ClassOnly: true, Drift: 5 * time.Minute,
		Gateways: []config.Gateway{{
			Name: "dmz", Edge: "urn:vcloud:gateway:2", VIPSubnet: netip.MustParsePrefix("10.1.0.0/24"), IPSpace: "dmz",
			OneArm: &config.Range{From: netip.MustParseAddr("192.168.8.2"), To: netip.MustParseAddr("192.168.8.100")},
		}},
	}))
	chosen := config.Selection{NICs: []int{0, 1}, CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Exclude: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/24")}}
	g.Expect(got.Nodes).To(Equal(config.Nodes{
		Region: "north", Zones: []config.Zone{{Name: "rack-a", Region: "south", VDC: "urn:vcloud:vdc:1", PlacementPolicy: "rack-a"}},
		Families: []config.Family{config.IPv6, config.IPv4}, Internal: chosen, External: chosen, MaxAge: 30 * time.Second,
	}))

	nothing, err := config.Parse(must(Config{
		VCD: VCDConfig{Host: "https://vcd.example.com", Org: "acme", VDC: "urn:vcloud:vdc:1"}, LoadBalancer: LoadBalancerConfig{Enabled: new(bool)},
	}.YAML()), config.Environment{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(nothing.Balancer.Disabled).To(BeTrue())
}
