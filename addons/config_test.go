package addons

import (
	"errors"
	"net/netip"
	"testing"

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
