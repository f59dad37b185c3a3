// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

var dualStack = []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6}

// spacesOfBothFamilies gives the gateway an IP Space of each family. One address of the second one is free.
func spacesOfBothFamilies(m *model) {
	withSpaces(m)
	m.gateway.Spaces = append(m.gateway.Spaces, Space{
		ID:     "space-2",
		Name:   "public-v6",
		Ranges: []Range{addresses("2001:db8::10-2001:db8::10")},
	})
}

func TestAddressesOfBothFamilies(t *testing.T) {
	full := func(m *model) {
		spacesOfBothFamilies(m)
		m.gateway.Spaces[1].Full = true
	}
	tests := []struct {
		name      string
		mods      []func(*model)
		change    func(*Desired)
		addresses []string
		notices   []string
		refusals  []string
	}{
		{
			name:      "an IP Space of one family does not restrict the other",
			mods:      []func(*model){spacesOfBothFamilies},
			change:    func(d *Desired) { d.IPSpace = "public" },
			addresses: []string{"198.51.100.1", "2001:db8::10"},
		},
		{
			name: "an IP Space of the second family does not restrict the first",
			mods: []func(*model){spacesOfBothFamilies},
			change: func(d *Desired) {
				d.IPSpace = "public-v6"
				d.AllFamilies = true
			},
			addresses: []string{"198.51.100.1", "2001:db8::10"},
		},
		{
			name:     "an unknown IP Space restricts both",
			mods:     []func(*model){spacesOfBothFamilies},
			change:   func(d *Desired) { d.IPSpace = "typo" },
			notices:  []string{NoFreeAddress},
			refusals: []string{NoFreeAddress},
		},
		{
			name:      "no address of an optional family is free",
			mods:      []func(*model){full},
			addresses: []string{"198.51.100.1"},
			notices:   []string{NoFreeAddress},
		},
		{
			name:     "no address of a required family is free",
			mods:     []func(*model){full},
			change:   func(d *Desired) { d.AllFamilies = true },
			refusals: []string{NoFreeAddress},
		},
		{
			name: "private addresses of both families in one-arm mode are internal",
			change: func(d *Desired) {
				d.OneArm = arm()
				d.Requested = []netip.Addr{ip("192.168.9.5"), ip("fd00::5")}
			},
			addresses: []string{"192.168.9.5", "fd00::5"},
		},
		{
			name: "a private address of the gateway in one-arm mode is translated",
			mods: []func(*model){func(m *model) {
				m.gateway.Ranges = append(m.gateway.Ranges, addresses("10.9.0.5-10.9.0.5"))
			}},
			change: func(d *Desired) {
				d.OneArm = arm()
				d.Requested = []netip.Addr{ip("10.9.0.5")}
			},
			addresses: []string{"10.9.0.5"},
			notices:   []string{Unsupported},
		},
		{
			name: "a subnet of one family keeps the configured subnets of the other",
			change: func(d *Desired) {
				d.Internal = true
				d.AllFamilies = true
				d.Subnet = netip.MustParsePrefix("192.168.9.0/24")
				d.InternalSubnets = prefixList("192.168.0.0/16", "fd00::/64")
			},
			addresses: []string{"192.168.9.1", "fd00::1"},
		},
		{
			name: "no subnet for internal load balancers has the second family",
			change: func(d *Desired) {
				d.Internal = true
				d.InternalSubnets = prefixList("192.168.9.0/24")
			},
			addresses: []string{"192.168.9.1"},
			notices:   []string{Unsupported},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			d := ourService()
			d.Families = dualStack
			if tt.change != nil {
				tt.change(&d)
			}

			plan, err := newModel(tt.mods...).converge(&d, -1)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(reasonsOf(plan.Refusals)).To(HaveExactElements(tt.refusals))
			g.Expect(reasonsOf(plan.Notices)).To(HaveExactElements(tt.notices))
			found := []string{}
			for _, a := range plan.Status.Addresses {
				found = append(found, a.String())
			}
			g.Expect(found).To(HaveExactElements(tt.addresses))
		})
	}
}

// TestAPromisedAddressMayBeInternal shares the address of an internal load balancer, which its Service also promises
// without knowing that it is internal.
func TestAPromisedAddressMayBeInternal(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	internal := func(d *Desired) {
		d.Internal = true
		d.Share = "dns"
		d.InternalSubnets = prefixList("192.168.9.0/24")
	}
	first := ourService()
	internal(&first)
	one, err := m.converge(&first, -1)
	g.Expect(err).NotTo(HaveOccurred())
	promise := loadbalancer.Use{
		Address:  one.Status.Addresses[0],
		Protocol: loadbalancer.TCP,
		Port:     80,
		Kind:     "Service",
		Name:     "shop/web",
		Owner:    first.Owner,
		Share:    "dns",
		Promised: true,
	}
	joining := func(name string, port int) Desired {
		d := ourService()
		d.Share = "dns"
		d.Owner.Name = name
		d.Owner.UID = "uid-of-" + name
		d.Listeners = []Listener{{Protocol: loadbalancer.UDP, Application: L4, Port: port, NodePort: 30053}}
		d.Reserved = []loadbalancer.Use{promise}
		return d
	}

	second := joining("web2", 53)
	internal(&second)
	two, err := m.converge(&second, -1)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(two.Status.Addresses).To(Equal(one.Status.Addresses))

	outside := joining("web3", 54)
	three, err := m.converge(&outside, -1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(three.Status.Addresses).To(Equal([]netip.Addr{ip("203.0.113.10")}), "an external one does not join them")
}

func TestPlannedRulesHaveTheirProtocol(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	d.OneArm = arm()
	d.Listeners = []Listener{{Protocol: loadbalancer.UDP, Application: L4, Port: 53, NodePort: 30053}}
	uses := 0
	for _, step := range stepsOf(newModel().next(d)) {
		for _, use := range step.Uses() {
			g.Expect(use).To(And(HaveField("Protocol", loadbalancer.UDP), HaveField("Port", 53)), step.String())
			uses++
		}
	}
	g.Expect(uses).To(Equal(2), "the virtual service and the DNAT rule")
}
