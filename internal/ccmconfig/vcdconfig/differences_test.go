// SPDX-License-Identifier: Apache-2.0

package vcdconfig

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDifferences(t *testing.T) {
	arm := &Range{netip.MustParseAddr("192.168.8.2"), netip.MustParseAddr("192.168.8.100")}
	tests := []struct {
		name          string
		found, wanted func(*Config)
		want          []Difference
	}{
		{"equal configurations", func(*Config) {}, func(*Config) {}, nil},
		{
			"a removed internal range",
			func(c *Config) { c.LoadBalancer.OneArm = arm },
			func(*Config) {},
			[]Difference{{"loadbalancer.oneArm", "192.168.8.2-192.168.8.100", ""}},
		},
		{
			"a new external subnet",
			func(*Config) {},
			func(c *Config) { c.LoadBalancer.VIPSubnet = netip.MustParsePrefix("203.0.113.0/24") },
			[]Difference{{"loadbalancer.vipSubnet", "", "203.0.113.0/24"}},
		},
		{
			"another ID means another default certificate, too",
			func(c *Config) { c.ClusterID = "prod" },
			func(*Config) {},
			[]Difference{{"clusterid", "prod", "id"}, {"loadbalancer.certAlias", "prod-cert", "id-cert"}},
		},
		{
			"the default certificate by name",
			func(c *Config) { c.LoadBalancer.CertAlias = "id-cert" },
			func(*Config) {},
			nil,
		},
		{
			"explicit defaults",
			func(c *Config) {
				c.LoadBalancer.Enabled = new(true)
				c.LoadBalancer.Algorithm = "ROUND_ROBIN"
				c.VCD.Host += "/api/"
			},
			func(*Config) {},
			nil,
		},
		{
			"login, trust and polling settings",
			func(c *Config) {
				c.VCD.User = "u"
				c.VCD.Secret = "s"
				c.VCD.RefreshToken = "t"
				c.VCD.CABundle = "PEM"
				c.VCD.Burst = 3
				c.Nodes.MaxAge = metav1.Duration{Duration: time.Second}
			},
			func(*Config) {},
			nil,
		},
		{
			"another vApp",
			func(c *Config) { c.VAppName = "old" },
			func(c *Config) { c.VAppName = "new" },
			[]Difference{{"vAppName", "old", "new"}},
		},
		{"a vApp that is not required", func(c *Config) { c.VAppName = "old" }, func(*Config) {}, nil},
		{
			"settings that CPI does not have",
			func(*Config) {},
			func(c *Config) {
				c.LoadBalancer.EngineGroup = "seg"
				c.LoadBalancer.TLSPorts = "Annotated"
				c.Nodes.DefaultZone = "None"
			},
			nil,
		},
		{
			"an additional gateway",
			func(c *Config) { c.LoadBalancer.Gateways = []Gateway{{Name: "dmz"}} },
			func(*Config) {},
			[]Difference{{"loadbalancer.gateways[0].name", "dmz", ""}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := config()
			wanted := config()
			tt.found(&found)
			tt.wanted(&wanted)

			NewWithT(t).Expect(Differences(found, wanted)).To(Equal(tt.want))
		})
	}
}

func config() Config {
	c := Config{VCD: VCD{Host: "https://vcd.example.com", Org: "acme", VDC: "acme-vdc"}, ClusterID: "id"}
	c.LoadBalancer.Network = "nodes"
	return c
}
