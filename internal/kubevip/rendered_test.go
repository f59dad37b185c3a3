// SPDX-License-Identifier: Apache-2.0

package kubevip_test

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
)

var update = flag.Bool("update", false, "write the manifests in testdata")

// The tests of hack/kubevip read these files with kube-vip's own parser, which no other module links.
func TestRenderedManifestsMatchTheKubeVIPTestData(t *testing.T) {
	for name, mod := range map[string]func(*kubevip.Config){
		"pod-arp.yaml":        func(*kubevip.Config) {},
		"pod-dual-stack.yaml": func(c *kubevip.Config) { c.Addresses = []string{"fd00:100::c8", "192.168.100.200"} },
		"pod-dynamic-dns.yaml": func(c *kubevip.Config) {
			c.Addresses = []string{"api.demo.example.com"}
			c.DynamicDNS = true
		},
		"pod-bgp.yaml": func(c *kubevip.Config) {
			c.Addresses = []string{"203.0.113.10", "2001:db8:1::10"}
			c.BGP = &kubevip.BGP{
				AS:              4200000001,
				RouterInterface: "ens192",
				SourceInterface: "ens224",
				Peers: []kubevip.Peer{
					{Address: netip.MustParseAddr("192.168.100.1"), AS: 65000, Password: "s3cret!{x}"},
					{Address: netip.MustParseAddr("fd00:100::1"), AS: 65001, MultiHop: true},
				},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join("testdata", name)

			got := render(t, config(mod))[kubevip.KeyManifest]

			if *update {
				g.Expect(os.WriteFile(path, got, 0o600)).To(Succeed())
			}
			g.Expect(os.ReadFile(path)).To(Equal(got), "go test ./internal/kubevip -run Rendered -update")
		})
	}
}
