// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func ethernet(network string, addresses ...string) guestNIC {
	return guestNIC{network: network, addresses: addresses}
}

var (
	onlyIPv6 = []corev1.IPFamily{corev1.IPv6Protocol}
	both     = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
)

// TestAddresses covers the cases that the vSphere CPI distinguishes. Addresses are written internal, external.
func TestAddresses(t *testing.T) {
	two := []guestNIC{ethernet("foo", "10.10.1.22"), ethernet("bar", "172.15.108.10")}
	many := []guestNIC{ethernet("intnet", "192.168.1.10", "fd00:1::10"), ethernet("extnet", "10.10.50.12", "fd00:2::10")}
	tests := []struct {
		name     string
		policy   AddressPolicy
		nics     []guestNIC
		static   []string
		internal []string
		external []string
	}{
		{name: "one address is internal and external", policy: AddressPolicy{}, nics: []guestNIC{ethernet("n", "10.0.0.1")}, internal: []string{"10.0.0.1"}, external: []string{"10.0.0.1"}},
		{name: "the first of several is internal and external", policy: AddressPolicy{}, nics: two, internal: []string{"10.10.1.22"}, external: []string{"10.10.1.22"}},
		{name: "IPv6 is omitted by default", policy: AddressPolicy{}, nics: []guestNIC{ethernet("n", "fd00::1", "10.0.0.1")}, internal: []string{"10.0.0.1"}, external: []string{"10.0.0.1"}},
		{name: "only IPv6", policy: AddressPolicy{Families: onlyIPv6}, nics: many, internal: []string{"fd00:1::10"}, external: []string{"fd00:1::10"}},
		{name: "both families in their order", policy: AddressPolicy{Families: both}, nics: many, internal: []string{"192.168.1.10", "fd00:1::10"}, external: []string{"192.168.1.10", "fd00:1::10"}},
		{name: "a family without an address in the VM", policy: AddressPolicy{Families: both}, nics: two, internal: []string{"10.10.1.22"}, external: []string{"10.10.1.22"}},
		{name: "a NIC of a container network is ignored", policy: AddressPolicy{}, nics: []guestNIC{{"cni", true, []string{"10.244.0.1"}}, ethernet("n", "10.0.0.1")}, internal: []string{"10.0.0.1"}, external: []string{"10.0.0.1"}},
		{
			name:     "node-local addresses are omitted",
			policy:   AddressPolicy{Families: both},
			nics:     []guestNIC{ethernet("n", "127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "x", "fe80::1", "::1", "ff02::1", "10.0.0.1", "fd00::1")},
			internal: []string{"10.0.0.1", "fd00::1"},
			external: []string{"10.0.0.1", "fd00::1"},
		},
		{name: "internal and external by CIDR", policy: AddressPolicy{Internal: Selection{CIDRs: prefixes("172.15.0.0/16")}, External: Selection{CIDRs: prefixes("10.0.0.0/8")}}, nics: two, internal: []string{"172.15.108.10"}, external: []string{"10.10.1.22"}},
		{name: "the first CIDR with an address takes precedence", policy: AddressPolicy{Internal: Selection{CIDRs: prefixes("192.0.2.0/24", "172.15.0.0/16", "10.0.0.0/8")}}, nics: two, internal: []string{"172.15.108.10"}},
		{name: "by CIDR in both families", policy: AddressPolicy{Families: both, Internal: Selection{CIDRs: prefixes("10.10.0.0/16", "fd00:2::/64")}, External: Selection{CIDRs: prefixes("192.168.0.0/16", "fd00:1::/64")}}, nics: many, internal: []string{"10.10.50.12", "fd00:2::10"}, external: []string{"192.168.1.10", "fd00:1::10"}},
		{name: "by the name of the network, regardless of case", policy: AddressPolicy{Internal: Selection{Network: "ExtNet"}, External: Selection{Network: "INTNET"}}, nics: many, internal: []string{"10.10.50.12"}, external: []string{"192.168.1.10"}},
		{name: "a CIDR takes precedence over a name", policy: AddressPolicy{Internal: Selection{CIDRs: prefixes("10.0.0.0/8"), Network: "intnet"}}, nics: many, internal: []string{"10.10.50.12"}},
		{name: "a name if the CIDR has no address", policy: AddressPolicy{Internal: Selection{CIDRs: prefixes("192.0.2.0/24"), Network: "extnet"}}, nics: many, internal: []string{"10.10.50.12"}},
		{name: "internal by CIDR, external by name", policy: AddressPolicy{Internal: Selection{CIDRs: prefixes("10.0.0.0/8")}, External: Selection{Network: "intnet"}}, nics: many, internal: []string{"10.10.50.12"}, external: []string{"192.168.1.10"}},
		{name: "only one of them is found and reported", policy: AddressPolicy{External: Selection{Network: "extnet"}}, nics: many, external: []string{"10.10.50.12"}},
		{name: "neither CIDR matches: the first address is both", policy: AddressPolicy{Internal: Selection{CIDRs: prefixes("192.0.2.0/24")}}, nics: two, internal: []string{"10.10.1.22"}, external: []string{"10.10.1.22"}},
		{name: "a single name without a match: the first address is both", policy: AddressPolicy{Internal: Selection{Network: "none"}}, nics: two, internal: []string{"10.10.1.22"}, external: []string{"10.10.1.22"}},
		{name: "two names without a match: neither is reported", policy: AddressPolicy{Internal: Selection{Network: "none"}, External: Selection{Network: "nothing"}}, nics: two},
		{name: "excluded internal addresses may be external", policy: AddressPolicy{Internal: Selection{Exclude: prefixes("10.0.0.0/8")}}, nics: two, internal: []string{"172.15.108.10"}, external: []string{"10.10.1.22"}},
		{name: "exclusions take precedence over CIDRs", policy: AddressPolicy{Internal: Selection{CIDRs: prefixes("10.0.0.0/8", "172.15.0.0/16"), Exclude: prefixes("10.10.1.0/24")}}, nics: two, internal: []string{"172.15.108.10"}},
		{name: "exclusions take precedence over names", policy: AddressPolicy{Internal: Selection{Network: "foo", Exclude: prefixes("10.10.1.22/32")}}, nics: two, internal: []string{"172.15.108.10"}, external: []string{"10.10.1.22"}},
		{name: "everything is excluded", policy: AddressPolicy{Internal: Selection{Exclude: prefixes("0.0.0.0/0")}, External: Selection{Exclude: prefixes("0.0.0.0/0")}}, nics: two},
		{name: "a virtual IP before the machine's own address, which cloud-init has", policy: AddressPolicy{}, nics: []guestNIC{ethernet("n", "10.0.0.100", "10.0.0.5")}, static: []string{"10.0.0.5"}, internal: []string{"10.0.0.5"}, external: []string{"10.0.0.5"}},
		{name: "in the order of cloud-init", policy: AddressPolicy{}, nics: two, static: []string{"172.15.108.10", "10.10.1.22"}, internal: []string{"172.15.108.10"}, external: []string{"172.15.108.10"}},
		{name: "addresses of cloud-init that the guest does not have are ignored", policy: AddressPolicy{}, nics: two, static: []string{"192.0.2.1"}, internal: []string{"10.10.1.22"}, external: []string{"10.10.1.22"}},
		{name: "an IPv4 address in IPv6 form", policy: AddressPolicy{}, nics: []guestNIC{ethernet("n", "::ffff:10.0.0.1")}, internal: []string{"10.0.0.1"}, external: []string{"10.0.0.1"}},
		{name: "the guest reports nothing", policy: AddressPolicy{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			guest := guest{hostname: "n1", nics: tt.nics}
			for _, a := range tt.static {
				guest.static = append(guest.static, netip.MustParseAddr(a))
			}

			addresses, wrong := tt.policy.choose(guest)

			got := map[corev1.NodeAddressType][]string{}
			for _, a := range addresses {
				got[a.Type] = append(got[a.Type], a.Address)
			}
			g.Expect(got[corev1.NodeInternalIP]).To(Equal(tt.internal))
			g.Expect(got[corev1.NodeExternalIP]).To(Equal(tt.external))
			if len(tt.internal)+len(tt.external) == 0 {
				g.Expect(addresses).To(BeNil())
				g.Expect(wrong).NotTo(BeEmpty(), "it is reported")
				return
			}
			g.Expect(got[corev1.NodeHostName]).To(Equal([]string{"n1"}))
		})
	}
}

func TestAllTypesOfAddresses(t *testing.T) {
	nics := []guestNIC{ethernet("a", "10.0.0.1"), ethernet("b", "192.0.2.1")}
	apart := AddressPolicy{Internal: Selection{Network: "a"}, External: Selection{Network: "b"}}
	tests := []struct {
		name   string
		policy AddressPolicy
		guest  guest
		want   []corev1.NodeAddressType
	}{
		{"a name without a domain", AddressPolicy{}, guest{hostname: "n1", nics: nics}, []corev1.NodeAddressType{"InternalIP", "ExternalIP", "Hostname"}},
		{"a name with its domain", AddressPolicy{}, guest{hostname: "n1.example.com", nics: nics}, []corev1.NodeAddressType{"InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"}},
		{"a domain of the guest's DNS client", AddressPolicy{}, guest{hostname: "n1", domain: "example.com", nics: nics}, []corev1.NodeAddressType{"InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"}},
		{"the external address is in another network of unknown name", apart, guest{hostname: "n1.example.com", nics: nics}, []corev1.NodeAddressType{"InternalIP", "ExternalIP", "Hostname", "InternalDNS"}},
		{"no hostname is reported yet", AddressPolicy{}, guest{fallback: "vm", nics: nics}, []corev1.NodeAddressType{"InternalIP", "ExternalIP", "Hostname"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			addresses, wrong := tt.policy.choose(tt.guest)

			var types []corev1.NodeAddressType
			for _, a := range addresses {
				types = append(types, a.Type)
				if a.Type == corev1.NodeInternalDNS || a.Type == corev1.NodeExternalDNS {
					g.Expect(a.Address).To(Equal("n1.example.com"))
				}
			}
			g.Expect(types).To(Equal(tt.want))
			g.Expect(wrong).To(BeEmpty())
		})
	}
}

func TestStaticAddresses(t *testing.T) {
	network := "ethernets:\n  eth1: {addresses: [10.0.1.5/24]}\n  eth0:\n    addresses: [10.0.0.5/24, 'fd00::5/64', x]\n"
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	gz := func(s string) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return base64.StdEncoding.EncodeToString(out.Bytes())
	}
	plain := "instance-id: x\nnetwork:\n  version: 2\n  ethernets:\n    eth1: {addresses: [10.0.1.5/24]}\n    eth0: {addresses: [10.0.0.5/24, 'fd00::5/64']}\n"
	for name, in := range map[string][2]string{
		"plain":                        {plain, ""},
		"base64":                       {b64(plain), "base64"},
		"base64 without its name":      {b64(plain), ""},
		"gzip":                         {gz(plain), "gzip+base64"},
		"the network in base64":        {b64("network: " + b64(network) + "\nnetwork.encoding: base64\n"), "base64"},
		"the network in gzip":          {b64("network: " + gz(network) + "\nnetwork.encoding: gzip+base64\n"), "base64"},
		"the network as text":          {b64("network: |\n  ethernets:\n    eth1: {addresses: [10.0.1.5/24]}\n    eth0: {addresses: [10.0.0.5/24, 'fd00::5/64']}\n"), "base64"},
		"the network with its own key": {b64("network: " + b64("network:\n  "+"ethernets: {eth0: {addresses: [10.0.0.5/24, 'fd00::5/64']}, eth1: {addresses: [10.0.1.5/24]}}")), "base64"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(staticAddresses(in[0], in[1])).To(Equal([]netip.Addr{
				netip.MustParseAddr("10.0.0.5"),
				netip.MustParseAddr("fd00::5"),
				netip.MustParseAddr("10.0.1.5"),
			}), "in a stable order")
		})
	}
	for _, broken := range []string{"", "x", "network: [", b64("network: " + b64("[")), "network: {ethernets: 1}", gz("x")[:20]} {
		NewWithT(t).Expect(staticAddresses(broken, "base64")).To(BeEmpty(), broken)
	}
}

func FuzzStaticAddresses(f *testing.F) {
	f.Add("network: {ethernets: {eth0: {addresses: [10.0.0.1/8]}}}", "")
	f.Add("H4sIAAAAAAAA", "gzip+base64")
	f.Fuzz(func(_ *testing.T, metadata, encoding string) { _ = staticAddresses(metadata, encoding) })
}
