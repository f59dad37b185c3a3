// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// table is a routing table in memory.
type table map[netip.Prefix]netip.Addr

func (t table) List() (map[netip.Prefix]netip.Addr, error) { return maps.Clone(t), nil }

func (t table) Replace(to netip.Prefix, via netip.Addr) error {
	t[to] = via
	return nil
}

func (t table) Delete(to netip.Prefix) error {
	delete(t, to)
	return nil
}

func node(name string, cidrs []string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDRs: cidrs}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

func newPlugin(t *testing.T) (*plugin, table, *[]string) {
	t.Helper()
	present := table{}
	rulesets := &[]string{}
	return &plugin{
		node:   "own",
		file:   filepath.Join(t.TempDir(), "10-node-network.conflist"),
		routes: present,
		rules: func(_ context.Context, ruleset string) error {
			*rulesets = append(*rulesets, ruleset)
			return nil
		},
	}, present, rulesets
}

func TestPodsOfOtherNodesAreRoutedToTheirNodes(t *testing.T) {
	g := NewWithT(t)
	p, present, rulesets := newPlugin(t)
	own := node("own", []string{"10.0.1.0/24"}, "192.168.0.1")
	other := node("other", []string{"10.0.2.0/24", "fd00:2::/64"}, "192.168.0.2", "192.168.0.22", "fd00::2")

	g.Expect(p.apply(t.Context(), []*corev1.Node{own, other, node("new", nil)})).To(Succeed())
	g.Expect(present).To(Equal(table{
		netip.MustParsePrefix("10.0.2.0/24"): netip.MustParseAddr("192.168.0.2"),
		netip.MustParsePrefix("fd00:2::/64"): netip.MustParseAddr("fd00::2"),
	}))
	g.Expect(p.apply(t.Context(), []*corev1.Node{own, other})).To(Succeed())
	g.Expect(*rulesets).To(HaveLen(1), "unchanged routes are not written again")

	other.Status.Addresses[0].Address = "192.168.0.3"
	g.Expect(p.apply(t.Context(), []*corev1.Node{own, other})).To(Succeed())
	g.Expect(present).To(HaveKeyWithValue(netip.MustParsePrefix("10.0.2.0/24"), netip.MustParseAddr("192.168.0.3")))

	g.Expect(p.apply(t.Context(), []*corev1.Node{own})).To(Succeed())
	g.Expect(present).To(BeEmpty())
}

func TestANodeWithoutPodCIDRsIsNotConfigured(t *testing.T) {
	g := NewWithT(t)
	p, _, _ := newPlugin(t)

	g.Expect(p.apply(t.Context(), []*corev1.Node{node("own", nil)})).To(MatchError("node own has no pod CIDR yet"))

	g.Expect(p.file).NotTo(BeAnExistingFile())
}

func TestTheConfigurationMatchesTheReferencePlugins(t *testing.T) {
	g := NewWithT(t)
	p, _, _ := newPlugin(t)

	g.Expect(p.apply(t.Context(), []*corev1.Node{node("own", []string{"10.0.1.0/24", "fd00:1::/64"})})).To(Succeed())

	content, err := os.ReadFile(p.file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(MatchJSON(`{"cniVersion": "1.0.0", "name": "node-network", "plugins": [
		{"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipam": {"type": "host-local",
			"ranges": [[{"subnet": "10.0.1.0/24"}], [{"subnet": "fd00:1::/64"}]],
			"routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
		{"type": "portmap", "capabilities": {"portMappings": true}}]}`))
}

func TestOnlyTrafficLeavingTheClusterIsMasqueraded(t *testing.T) {
	g := NewWithT(t)

	g.Expect(ruleset([]netip.Prefix{
		netip.MustParsePrefix("10.0.2.0/24"),
		netip.MustParsePrefix("10.0.1.0/24"),
		netip.MustParsePrefix("fd00:1::/64"),
	})).To(Equal(`table inet node-network {}
delete table inet node-network
table inet node-network {
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		oifname != "cni0" ip saddr { 10.0.1.0/24, 10.0.2.0/24 } ip daddr != { 10.0.1.0/24, 10.0.2.0/24 } masquerade
		oifname != "cni0" ip6 saddr { fd00:1::/64 } ip6 daddr != { fd00:1::/64 } masquerade
	}
}
`))
}
