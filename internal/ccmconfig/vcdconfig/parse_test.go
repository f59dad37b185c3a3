// SPDX-License-Identifier: Apache-2.0

package vcdconfig

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// legacy is the file in VMware's manifests, filled in.
const legacy = `
vcd:
  host: https://vcd.example.com/
  org: acme
  vdc: acme-vdc
loadbalancer:
  oneArm:
    startIP: "192.168.8.2"
    endIP: "192.168.8.100"
  ports:
    http: 80
    https: 443
  network: nodes
  vipSubnet: 10.11.12.0/24
  enableVirtualServiceSharedIP: false
  certAlias: web
clusterid: urn:vcloud:entity:vmware:capvcdCluster:5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11
vAppName: cluster-a
`

const minimal = `
vcd: {host: https://vcd.example.com, org: acme, vdc: acme-vdc}
loadbalancer: {network: nodes}
clusterid: c1
`

func parse(file string) (Config, []string, error) {
	return Parse([]byte(file),
		ccmconfig.Environment{ReadFile: func(string) ([]byte, error) { return nil, errors.New("no such file") }})
}

func TestLegacyFile(t *testing.T) {
	g := NewWithT(t)

	c, warnings, err := parse(legacy)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.VCD.Host).To(Equal("https://vcd.example.com"))
	g.Expect(c.VCD.VDCs).To(Equal([]string{"acme-vdc"}))
	g.Expect(c.LoadBalancer.OneArm).To(Equal(&Range{
		netip.MustParseAddr("192.168.8.2"),
		netip.MustParseAddr("192.168.8.100"),
	}))
	g.Expect(c.LoadBalancer.VIPSubnet).To(Equal(netip.MustParsePrefix("10.11.12.0/24")))
	g.Expect(c.LoadBalancer.CertAlias).To(Equal("web"))
	g.Expect(c.Nodes.VApps).To(Equal([]string{"cluster-a"}))
	g.Expect(c.RDE.ID).To(HaveSuffix("5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11"))
	g.Expect(warnings).To(ConsistOf(
		ContainSubstring("loadbalancer.ports.http (line 11) has no effect"),
		ContainSubstring("loadbalancer.ports.https"),
		ContainSubstring("enableVirtualServiceSharedIP")))
}

func TestEveryKeyIsRead(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	var ca bytes.Buffer
	g.Expect(pem.Encode(&ca, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})).To(Succeed())

	c, _, err := Parse([]byte(`
vcd:
  host: https://vcd.example.com/api
  org: acme
  vdcs: [vdc-b]
  userOrg: users
  caBundleFile: /etc/ca.pem
  serviceAccountSecret: ccm-token
  requestsPerSecond: 2.5
  burst: 5
  inFlight: 3
  requestTimeout: 20s
loadbalancer:
  network: nodes
  ipSpace: public
  engineGroup: seg
  algorithm: ROUND_ROBIN
  sourceRanges: true
  includeControlPlane: true
  class: example.com/vcd
  classOnly: true
  driftInterval: 5m
  gateways:
    - name: inside
      edgeGateway: edge-2
      oneArm: {startIP: 10.0.0.1, endIP: 10.0.0.1}
    - {name: outside, network: dmz, vipSubnet: 10.9.0.0/16}
nodes:
  vApps: [a, b]
  vAppNamePrefix: cluster-
  region: north
  maxAge: 1m
  zones:
    - {name: zone-a, region: south, vdc: vdc-a}
    - {name: zone-b, vdc: vdc-a, placementPolicy: rack-2}
  addresses:
    families: [IPv6, IPv4]
    internal: {nics: [1], cidrs: [10.0.0.0/8, "fd00::/8"]}
    external: {exclude: [10.0.0.0/8]}
rde: {id: "urn:vcloud:entity:vmware:capvcdCluster:1"}
`), ccmconfig.Environment{
		Getenv:   func(name string) string { return map[string]string{"CLUSTER_ID": "from-env\n"}[name] },
		ReadFile: func(string) ([]byte, error) { return ca.Bytes(), nil },
	})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.ClusterID).To(Equal("from-env"))
	g.Expect(c.VCD.VDCs).To(Equal([]string{"vdc-b", "vdc-a"}))
	g.Expect(c.VCD.CABundle).To(Equal(ca.String()))
	g.Expect(c.VCD).To(Equal(VCD{
		Host:                 "https://vcd.example.com",
		Org:                  "acme",
		VDCs:                 []string{"vdc-b", "vdc-a"},
		UserOrg:              "users",
		CABundle:             ca.String(),
		CABundleFile:         "/etc/ca.pem",
		ServiceAccountSecret: "ccm-token",
		RequestsPerSecond:    2.5,
		Burst:                5,
		InFlight:             3,
		RequestTimeout:       metav1.Duration{Duration: 20 * time.Second},
	}))
	one := netip.MustParseAddr("10.0.0.1")
	g.Expect(c.LoadBalancer).To(Equal(LoadBalancer{
		EdgeGateway: EdgeGateway{Network: "nodes", IPSpace: "public"},
		Gateways: []Gateway{
			{Name: "inside", EdgeGateway: EdgeGateway{ID: "edge-2", OneArm: &Range{one, one}}},
			{
				Name: "outside",
				EdgeGateway: EdgeGateway{
					Network:   "dmz",
					VIPSubnet: netip.MustParsePrefix("10.9.0.0/16"),
				},
			},
		},
		EngineGroup:         "seg",
		Algorithm:           "ROUND_ROBIN",
		SourceRanges:        true,
		IncludeControlPlane: true,
		Class:               "example.com/vcd",
		ClassOnly:           true,
		DriftInterval:       metav1.Duration{Duration: 5 * time.Minute},
	}))
	any4 := netip.MustParsePrefix("10.0.0.0/8")
	any6 := netip.MustParsePrefix("fd00::/8")
	g.Expect(c.Nodes).To(Equal(Nodes{
		VApps:          []string{"a", "b"},
		VAppNamePrefix: "cluster-",
		Region:         "north",
		MaxAge:         metav1.Duration{Duration: time.Minute},
		Zones: []Zone{
			{Name: "zone-a", Region: "south", VDC: "vdc-a"},
			{Name: "zone-b", VDC: "vdc-a", PlacementPolicy: "rack-2"},
		},
		Addresses: Addresses{
			Families: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol},
			Internal: Selection{NICs: []int{1}, CIDRs: []netip.Prefix{any4, any6}},
			External: Selection{Exclude: []netip.Prefix{any4}},
		},
	}))
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name string
		file string
		want []string // all problems
	}{
		{
			name: "all missing keys are reported at once",
			file: "{}",
			want: []string{
				"vcd.host: is missing", "vcd.org: is missing", "vcd.vdc: is missing", "clusterid: is missing",
				"loadbalancer.network: is missing",
			},
		},
		{
			name: "a cluster without load balancers needs no network and no ID",
			file: "vcd: {host: https://h, org: o, vdc: v}\nloadbalancer: {enabled: false}",
		},
		{name: "an unknown key", file: minimal + "nodes: {zonez: []}\n", want: []string{"nodes.zonez (line 5): is not a key"}},
		{
			name: "a key with another spelling",
			file: minimal + "nodes: {vappnameprefix: x}\n",
			want: []string{"nodes.vAppNamePrefix may be intended"},
		},
		{
			name: "a key at the location of older versions",
			file: minimal + "network: x\n",
			want: []string{"loadbalancer.gateways[…].network or loadbalancer.network may be intended"},
		},
		{
			name: "a duplicate key",
			file: minimal + "vAppName: a\nvAppName: b\n",
			want: []string{"vAppName (line 6): is duplicated"},
		},
		{
			name: "a value instead of a section",
			file: minimal + "nodes: x\n",
			want: []string{"nodes (line 5): must contain keys and values"},
		},
		{
			name: "a section instead of a value",
			file: minimal + "vAppName: {}\n",
			want: []string{"vAppName (line 5): must be a single value"},
		},
		{
			name: "a value instead of a list",
			file: minimal + "nodes: {vApps: x}\n",
			want: []string{"nodes.vApps (line 5): must be a list"},
		},
		{
			name: "values of the wrong type",
			file: minimal + "nodes: {maxAge: soon, addresses: {internal: {nics: [a, 1], cidrs: [10.0.0.1]}, families: [IPv5]}}\n",
			want: []string{"nodes.maxAge", "nics (line 5): element 1", "cidrs (line 5): element 1", `"IPv5"`},
		},
		{
			name: "http is refused",
			file: "vcd: {host: http://h, org: o, vdc: v}\nloadbalancer: {enabled: no}",
			want: []string{"require https"},
		},
		{
			name: "a password in the address is not repeated",
			file: "vcd: {host: https://u:pw@h, org: o, vdc: v}\nloadbalancer: {enabled: no}",
			want: []string{"without user"},
		},
		{
			name: "an unreadable certificate file",
			file: strings.Replace(minimal, "vdc: acme-vdc", "vdc: v, caBundleFile: /x", 1),
			want: []string{"vcd.caBundleFile (line 2): cannot be read"},
		},
		{
			name: "invalid certificates",
			file: strings.Replace(minimal, "vdc: acme-vdc", "vdc: v, caBundle: x", 1),
			want: []string{"no certificate"},
		},
		{
			name: "zones that contradict each other",
			file: minimal + "nodes: {zones: [{name: a, vdc: v}, {name: -, vdc: v}, {name: c}]}\n",
			want: []string{"zones[1].name", "zones[1].vdc", "zones[2].vdc"},
		},
		{
			name: "an ID that is not a valid marker",
			file: strings.Replace(minimal, "c1", "two words", 1),
			want: []string{"clusterid (line 4)"},
		},
		{
			name: "an ID that was never filled in",
			file: strings.Replace(minimal, "c1", "CLUSTER_ID", 1),
			want: []string{"clusterid (line 4): is still CLUSTER_ID"},
		},
		{
			name: "one-arm ranges",
			file: strings.Replace(minimal, "network: nodes", "network: n, oneArm: {startIP: 10.0.0.9, endIP: 10.0.0.1}, gateways: [{name: x, network: n, oneArm: {startIP: 10.0.0.1}}]", 1),
			want: []string{
				"loadbalancer.oneArm.endIP (line 3): is 10.0.0.1, which is before",
				"gateways[0].oneArm.endIP: is missing",
			},
		},
		{
			name: "gateways that cannot be distinguished",
			file: strings.Replace(minimal, "network: nodes",
				"network: n, edgeGateway: e, gateways: [{name: x, network: n}, {name: x}, {network: n}]", 1),
			want: []string{"edgeGateway (line 3)", "gateways[1].name", "gateways[1].network", "gateways[2].name"},
		},
		{
			name: "a class that is not set, and an unknown algorithm",
			file: strings.Replace(minimal, "network: nodes", "network: n, classOnly: true, algorithm: best", 1),
			want: []string{"classOnly", "algorithm"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, _, err := parse(tt.file)

			text := ""
			if err != nil {
				text = err.Error()
			}
			g.Expect(strings.Count(text, "\n")+min(1, len(text))).To(Equal(len(tt.want)), text)
			for _, want := range tt.want {
				g.Expect(text).To(ContainSubstring(want))
			}
			g.Expect(text).NotTo(ContainSubstring("u:pw"))
		})
	}
}

func TestNoRuntimeDefinedEntity(t *testing.T) {
	for name, file := range map[string]string{
		"an ID that disables it":     strings.Replace(minimal, "c1", "NO_RDE_1234", 1),
		"a section that disables it": strings.Replace(legacy, "vAppName", "rde: {enabled: false}\nvAppName", 1),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			c, _, err := parse(file)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.RDE.ID).To(BeEmpty())
			g.Expect(c.ClusterID).NotTo(BeEmpty())
		})
	}
}

func TestAddressesAnnouncedByKubeVIP(t *testing.T) {
	const file = `
vcd: {host: https://vcd.example.com, org: acme, vdc: acme-vdc}
loadbalancer: %s
`
	parse := func(balancer string) (Config, error) {
		c, _, err := Parse(fmt.Appendf(nil, file, balancer), ccmconfig.Environment{Getenv: func(string) string { return "" }})
		return c, err
	}
	t.Run("replace the load balancers of VCD without a class", func(t *testing.T) {
		g := NewWithT(t)
		c, err := parse(`{kubeVIP: {addressRanges: [{startIP: 10.0.0.10, endIP: 10.0.0.20}]}}`)
		g.Expect(err).NotTo(HaveOccurred(), "neither network nor clusterid is required")
		g.Expect(c.LoadBalancer.Disabled()).To(BeTrue())
	})
	t.Run("are served in addition, with a class", func(t *testing.T) {
		g := NewWithT(t)
		c, err := parse(`{enabled: true, kubeVIP: {class: a/b, addressRanges: [{startIP: 10.0.0.10, endIP: 10.0.0.20}]}}`)
		g.Expect(err).To(MatchError(ContainSubstring("loadbalancer.network")))
		g.Expect(c.LoadBalancer.Disabled()).To(BeFalse())
	})
	for balancer, want := range map[string]string{
		`{enabled: false, kubeVIP: {class: a/b}}`: "is missing: write the addresses that Services get",
		`{enabled: false, class: a/b, kubeVIP: {class: a/b, addressRanges: [{startIP: 10.0.0.10, endIP: 10.0.0.20}]}}`: "is also loadbalancer.class",
		`{class: a/b, kubeVIP: {addressRanges: [{startIP: 10.0.0.10, endIP: 10.0.0.20}]}}`:                             "has no effect, because kube-vip serves",
		`{kubeVIP: {addressRanges: [{startIP: 10.0.0.10, endIP: 10.0.0.2}]}}`:                                          "is before its start",
		`{kubeVIP: {addressRanges: [{startIP: 10.0.0.10}]}}`:                                                           "needs startIP and endIP",
	} {
		t.Run(balancer, func(t *testing.T) {
			_, err := parse(balancer)

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}
