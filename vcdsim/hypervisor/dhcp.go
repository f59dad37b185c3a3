// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// dhcp is the DHCP server of one network. A card gets the address that the simulator chose for it. A client with a
// reservation gets the reserved address.
type dhcp struct {
	server *server4.Server
	common vcdsim.GuestNIC // settings for all clients
	names  *names

	mu     sync.Mutex
	offers map[string]offer // by MAC in lower case
}

type offer struct {
	nic     vcdsim.GuestNIC
	onLease func(address string)
}

const leaseTime = 24 * time.Hour

func (h *hub) serveDHCP(bridge string, common vcdsim.GuestNIC) (*dhcp, error) {
	d := &dhcp{common: common, names: h.names, offers: map[string]offer{}}
	err := h.do(func() error {
		var err error
		d.server, err = server4.NewServer(bridge, &net.UDPAddr{IP: net.IPv4zero, Port: dhcpv4.ServerPort}, d.handle)
		return wrap("listening for DHCP", err)
	})
	if err != nil {
		return nil, err
	}
	go func() { _ = d.server.Serve() }() // until close
	return d, nil
}

func (d *dhcp) close() { _ = d.server.Close() } // read only

func (d *dhcp) offer(nic vcdsim.GuestNIC, onLease func(address string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.offers[strings.ToLower(nic.MAC)] = offer{nic, onLease}
}

func (d *dhcp) withdraw(mac string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.offers, strings.ToLower(mac))
}

// find returns the offer for a client: by its client ID, because several clients may share a card, or otherwise by
// its card.
func (d *dhcp) find(m *dhcpv4.DHCPv4) (offer, bool) {
	client := string(m.Options.Get(dhcpv4.OptionClientIdentifier))
	if r, ok := d.names.reservation(client); ok && d.common.Prefix.Contains(r.Address) {
		nic := d.common
		nic.Address = r.Address
		return offer{nic, func(string) { d.names.recordLease(r, m.ClientHWAddr.String()) }}, true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.offers[m.ClientHWAddr.String()]
	return o, ok
}

func (d *dhcp) handle(conn net.PacketConn, peer net.Addr, m *dhcpv4.DHCPv4) {
	o, ok := d.find(m)
	if !ok {
		return // the network has no address for it
	}
	answer, acknowledged, err := o.answer(m)
	if err != nil || answer == nil {
		return
	}
	if _, err := conn.WriteTo(answer.ToBytes(), peer); err == nil && acknowledged {
		o.onLease(o.nic.Address.String())
	}
}

// answer returns the reply to a message, or nil for none. The second result reports whether it assigns an address.
func (o offer) answer(m *dhcpv4.DHCPv4) (*dhcpv4.DHCPv4, bool, error) {
	kinds := map[dhcpv4.MessageType]dhcpv4.MessageType{
		dhcpv4.MessageTypeDiscover: dhcpv4.MessageTypeOffer,
		dhcpv4.MessageTypeRequest:  dhcpv4.MessageTypeAck,
	}
	kind, ok := kinds[m.MessageType()]
	if !ok {
		return nil, false, nil
	}
	nic := o.nic
	options := []dhcpv4.Modifier{
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithYourIP(nic.Address.AsSlice()),
		dhcpv4.WithServerIP(nic.Gateway.AsSlice()),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(nic.Gateway.AsSlice())),
		dhcpv4.WithNetmask(net.CIDRMask(nic.Prefix.Bits(), nic.Prefix.Addr().BitLen())),
		dhcpv4.WithLeaseTime(uint32(leaseTime.Seconds())),
	}
	if nic.Routed {
		options = append(options, dhcpv4.WithRouter(nic.Gateway.AsSlice()))
	}
	var dns []net.IP
	for _, a := range nic.DNS {
		dns = append(dns, a.AsSlice())
	}
	if len(dns) > 0 {
		options = append(options, dhcpv4.WithDNS(dns...))
	}
	answer, err := dhcpv4.NewReplyFromRequest(m, options...)
	if err != nil {
		return nil, false, fmt.Errorf("answering: %w", err)
	}
	return answer, kind == dhcpv4.MessageTypeAck, nil
}
