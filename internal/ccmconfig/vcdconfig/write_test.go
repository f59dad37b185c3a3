// SPDX-License-Identifier: Apache-2.0

package vcdconfig

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// read writes a configuration as the manager does, and reads it as the cloud controller manager does.
func read(g *WithT, c Config) (Config, []string) {
	raw, err := yaml.Marshal(c)
	g.Expect(err).NotTo(HaveOccurred())
	got, warnings, err := Parse(raw, ccmconfig.Environment{})
	g.Expect(err).NotTo(HaveOccurred())
	return got, warnings
}

func TestWrittenConfigurationIsReadBack(t *testing.T) {
	g := NewWithT(t)
	arm, err := ParseRange("")
	g.Expect(err).NotTo(HaveOccurred())
	some := Selection{
		NICs:    []int{0, 1},
		CIDRs:   []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Exclude: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/24")},
	}
	want := Config{
		VCD: VCD{
			Host:                 "https://vcd.example.com",
			Org:                  "acme",
			VDC:                  "urn:vcloud:vdc:1",
			VDCs:                 []string{"urn:vcloud:vdc:1"},
			InsecureSkipVerify:   true,
			ServiceAccountSecret: "vcloud-service-account",
		},
		LoadBalancer: LoadBalancer{
			EdgeGateway:         EdgeGateway{Network: "nodes", IPSpace: "public"},
			EngineGroup:         "seg",
			Algorithm:           "RANDOM",
			CertAlias:           "wildcard",
			SourceRanges:        true,
			IncludeControlPlane: true,
			Class:               "example.com/vcd",
			ClassOnly:           true,
			DriftInterval:       metav1.Duration{Duration: 5 * time.Minute},
			Gateways: []Gateway{{
				Name: "dmz",
				EdgeGateway: EdgeGateway{
					ID:        "urn:vcloud:gateway:2",
					VIPSubnet: netip.MustParsePrefix("10.1.0.0/24"),
					IPSpace:   "dmz",
					OneArm:    &arm,
				},
			}},
		},
		ClusterID: "infra-1",
		VAppName:  "demo",
		Nodes: Nodes{
			VApps:  []string{"demo"},
			Region: "north",
			MaxAge: metav1.Duration{Duration: 30 * time.Second},
			Zones:  []Zone{{Name: "rack-a", Region: "south", VDC: "urn:vcloud:vdc:1", PlacementPolicy: "rack-a"}},
			Addresses: Addresses{
				Families: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol},
				Internal: some,
				External: some,
			},
		},
	}

	got, warnings := read(g, want)

	g.Expect(warnings).To(ConsistOf(ContainSubstring("insecureSkipVerify")), "no key without an effect")
	g.Expect(got).To(Equal(want))
}

func TestOmittedKeysHaveTheirDefaults(t *testing.T) {
	g := NewWithT(t)

	got, warnings := read(g, Config{
		VCD:          VCD{Host: "https://vcd.example.com", Org: "acme", VDC: "v"},
		LoadBalancer: LoadBalancer{Enabled: new(false)},
	})

	g.Expect(warnings).To(BeEmpty())
	g.Expect(got.LoadBalancer.Disabled()).To(BeTrue())
	g.Expect(got.Nodes).To(Equal(Nodes{MaxAge: metav1.Duration{Duration: 30 * time.Second}}))
}

func TestParseRange(t *testing.T) {
	addresses := func(first, last string) Range { return Range{netip.MustParseAddr(first), netip.MustParseAddr(last)} }
	tests := []struct {
		name, from string
		want       Range
		wrong      bool
	}{
		{"an empty value is CPI's range", "", addresses("192.168.8.2", "192.168.8.100"), false},
		{"a range", "10.0.0.1-10.0.0.9", addresses("10.0.0.1", "10.0.0.9"), false},
		{"blanks", "10.0.0.1 - 10.0.0.9", addresses("10.0.0.1", "10.0.0.9"), false},
		{"one address", "10.0.0.1", Range{}, true},
		{"backwards", "10.0.0.9-10.0.0.1", Range{}, true},
		{"two families", "10.0.0.9-fd00::1", Range{}, true},
		{"a word instead of a range", "a-b", Range{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got, err := ParseRange(tt.from)

			g.Expect(err != nil).To(Equal(tt.wrong), "%v", err)
			g.Expect(got).To(Equal(tt.want))
		})
	}
}
