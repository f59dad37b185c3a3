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
		{name: "equal configurations", found: func(*Config) {}, wanted: func(*Config) {}},
		{
			name:   "a removed internal range",
			found:  func(c *Config) { c.LoadBalancer.OneArm = arm },
			wanted: func(*Config) {},
			want:   []Difference{{"loadbalancer.oneArm", "192.168.8.2-192.168.8.100", ""}},
		},
		{
			name:   "a new external subnet",
			found:  func(*Config) {},
			wanted: func(c *Config) { c.LoadBalancer.VIPSubnet = netip.MustParsePrefix("203.0.113.0/24") },
			want:   []Difference{{"loadbalancer.vipSubnet", "", "203.0.113.0/24"}},
		},
		{
			name:   "another ID means another default certificate, too",
			found:  func(c *Config) { c.ClusterID = "prod" },
			wanted: func(*Config) {},
			want:   []Difference{{"clusterid", "prod", "id"}, {"loadbalancer.certAlias", "prod-cert", "id-cert"}},
		},
		{
			name:   "the default certificate by name",
			found:  func(c *Config) { c.LoadBalancer.CertAlias = "id-cert" },
			wanted: func(*Config) {},
		},
		{
			name: "explicit defaults",
			found: func(c *Config) {
				c.LoadBalancer.Enabled = new(true)
				c.LoadBalancer.Algorithm = "ROUND_ROBIN"
				c.VCD.Host += "/api/"
			},
			wanted: func(*Config) {},
		},
		{
			name: "login, trust and polling settings",
			found: func(c *Config) {
				c.VCD.User = "u"
				c.VCD.Secret = "s"
				c.VCD.RefreshToken = "t"
				c.VCD.CABundle = "PEM"
				c.VCD.Burst = 3
				c.Nodes.MaxAge = metav1.Duration{Duration: time.Second}
			},
			wanted: func(*Config) {},
		},
		{
			name:   "another vApp",
			found:  func(c *Config) { c.VAppName = "old" },
			wanted: func(c *Config) { c.VAppName = "new" },
			want:   []Difference{{"vAppName", "old", "new"}},
		},
		{name: "a vApp that is not required", found: func(c *Config) { c.VAppName = "old" }, wanted: func(*Config) {}},
		{
			name:  "settings that CPI does not have",
			found: func(*Config) {},
			wanted: func(c *Config) {
				c.LoadBalancer.EngineGroup = "seg"
				c.LoadBalancer.TLSPorts = "Annotated"
				c.Nodes.DefaultZone = "None"
			},
		},
		{
			name:   "an additional gateway",
			found:  func(c *Config) { c.LoadBalancer.Gateways = []Gateway{{Name: "dmz"}} },
			wanted: func(*Config) {},
			want:   []Difference{{"loadbalancer.gateways[0].name", "dmz", ""}},
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
