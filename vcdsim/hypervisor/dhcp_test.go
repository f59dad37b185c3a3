// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"net"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// request returns a DHCP request of a network card, with a client ID unless it is empty.
func request(g *WithT, card, client string) *dhcpv4.DHCPv4 {
	mac, err := net.ParseMAC(card)
	g.Expect(err).NotTo(HaveOccurred())
	options := []dhcpv4.Modifier{dhcpv4.WithHwAddr(mac), dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest)}
	if client != "" {
		options = append(options, dhcpv4.WithOption(dhcpv4.OptClientIdentifier([]byte(client))))
	}
	m, err := dhcpv4.New(options...)
	g.Expect(err).NotTo(HaveOccurred())
	return m
}

func TestDHCPAssignsReservedAddressesByClientIDAndUpdatesDNS(t *testing.T) {
	g := NewWithT(t)
	const (
		own    = "00:50:56:00:00:01"
		other  = "00:50:56:00:00:02"
		client = "api"
		name   = "api.example.com"
	)
	address := netip.MustParseAddr("192.168.100.210")
	before := netip.MustParseAddr("192.168.100.240")
	h := &Hypervisor{hub: &hub{}}
	h.hub.names = newNames(h.hub)
	common := vcdsim.GuestNIC{
		Prefix:  netip.MustParsePrefix("192.168.100.0/24"),
		Gateway: netip.MustParseAddr("192.168.100.1"),
		Routed:  true,
	}
	d := &dhcp{common: common, names: h.hub.names, offers: map[string]offer{}}
	elsewhere := &dhcp{names: h.hub.names, offers: map[string]offer{}}
	elsewhere.common.Prefix = netip.MustParsePrefix("10.0.0.0/8")
	node := common
	node.Address = netip.MustParseAddr("192.168.100.130")
	d.offer(vcdsim.GuestNIC{MAC: own, Address: node.Address, Prefix: node.Prefix, Gateway: node.Gateway}, func(string) {})

	h.Reserve(Reservation{Client: client, Address: address, Name: name, Before: before})

	found, ok := h.hub.names.lookup(name)
	g.Expect(ok).To(BeTrue())
	g.Expect(found).To(ConsistOf(before), "until the client requests it")
	g.Expect(h.Holder(client)).To(BeEmpty())
	for _, card := range []string{own, other} {
		o, ok := d.find(request(g, card, client))
		g.Expect(ok).To(BeTrue())
		answer, acknowledged, err := o.answer(request(g, card, client))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(acknowledged).To(BeTrue())
		g.Expect(answer.YourIPAddr.String()).To(Equal(address.String()), card)
		g.Expect(answer.ServerIPAddr.String()).To(Equal("192.168.100.1"))
		o.onLease(o.nic.Address.String())
		g.Expect(h.Holder(client)).To(Equal(card))
	}
	found, _ = h.hub.names.lookup(name + ".")
	g.Expect(found).To(ConsistOf(address))
	o, ok := d.find(request(g, own, ""))
	g.Expect(ok).To(BeTrue())
	g.Expect(o.nic.Address).To(Equal(node.Address), "the interface itself keeps its address")
	_, ok = d.find(request(g, other, "another"))
	g.Expect(ok).To(BeFalse())
	_, ok = elsewhere.find(request(g, other, client))
	g.Expect(ok).To(BeFalse(), "the address is in another network")
}
