// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// names contains the DNS servers of all networks. They resolve the names and hostnames of VMs that are on and the
// names of reservations, and nothing else.
type names struct {
	hub *hub

	mu           sync.Mutex
	records      map[string][]netip.Addr
	reservations map[string]Reservation // by client ID
	holders      map[string]string      // last card that requested the address, by client ID
	servers      map[netip.Addr]server
}

// A server serves UDP and TCP. CoreDNS forwards requests that it received over TCP over TCP.
type server struct {
	packets net.PacketConn
	streams net.Listener
}

func listenDNS(a netip.AddrPort) (server, error) {
	packets, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(a))
	if err != nil {
		return server{}, err
	}
	at := packets.LocalAddr().(*net.UDPAddr).AddrPort() //nolint:forcetypeassert // a UDP socket
	streams, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return server{}, errors.Join(err, packets.Close())
	}
	return server{packets: packets, streams: streams}, nil
}

func newNames(h *hub) *names {
	return &names{
		hub:          h,
		records:      map[string][]netip.Addr{},
		reservations: map[string]Reservation{},
		holders:      map[string]string{},
		servers:      map[netip.Addr]server{},
	}
}

func (n *names) close() {
	for _, s := range n.servers {
		_ = s.packets.Close()
		_ = s.streams.Close() // read only
	}
}

func (n *names) add(vm vcdsim.GuestVM) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var addresses []netip.Addr
	for _, nic := range vm.NICs {
		if nic.Address.IsValid() {
			addresses = append(addresses, nic.Address)
		}
	}
	for _, name := range []string{vm.Name, vm.Hostname} {
		n.records[strings.ToLower(name)] = addresses
	}
}

func (n *names) remove(vm vcdsim.GuestVM) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.records, strings.ToLower(vm.Name))
	delete(n.records, strings.ToLower(vm.Hostname))
}

// A Reservation is an address that DHCP assigns to a client by its client ID, independent of the card. DNS then
// resolves a name to it. It simulates a DHCP server that updates DNS.
type Reservation struct {
	Client  string
	Address netip.Addr
	Name    string
	// Before is the address of the name until the client requests the reserved address.
	Before netip.Addr
}

// Reserve adds a reservation to the network of its address, or replaces the one of the same client.
func (h *Hypervisor) Reserve(r Reservation) {
	n := h.hub.names
	n.mu.Lock()
	n.reservations[r.Client] = r
	n.mu.Unlock()
	n.setAddress(r.Name, r.Before)
}

// Holder returns the MAC address of the card that last requested the address reserved for a client, or "" if none
// did.
func (h *Hypervisor) Holder(client string) string {
	n := h.hub.names
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.holders[client]
}

// recordLease records that a card has the address of a reservation, and points the name at it.
func (n *names) recordLease(r Reservation, card string) {
	n.mu.Lock()
	n.holders[r.Client] = card
	n.mu.Unlock()
	n.setAddress(r.Name, r.Address)
}

func (n *names) reservation(client string) (Reservation, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.reservations[client]
	return r, ok
}

// setAddress points a name at an address.
func (n *names) setAddress(name string, to netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.records[strings.ToLower(name)] = []netip.Addr{to}
}

// lookup returns the addresses of a name.
func (n *names) lookup(name string) ([]netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	addresses, ok := n.records[strings.ToLower(strings.TrimSuffix(name, "."))]
	return addresses, ok
}

func (n *names) serves(a netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.servers[a]
	return ok
}

// serve starts a DNS server on an address of the hub.
func (n *names) serve(a netip.Addr) error {
	if n.serves(a) {
		return nil
	}
	var s server
	err := n.hub.do(func() error {
		var err error
		s, err = listenDNS(netip.AddrPortFrom(a, 53))
		return wrap("listening for DNS", err)
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.servers[a] = s
	n.mu.Unlock()
	go n.read(s.packets)
	go n.accept(s.streams)
	return nil
}

const maxDNSRequest = 4096

func (n *names) read(conn net.PacketConn) {
	buf := make([]byte, maxDNSRequest)
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			return // closed
		}
		if answer := n.answer(buf[:size]); answer != nil {
			_, _ = conn.WriteTo(answer, from) // a client retries
		}
	}
}

func (n *names) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			defer func() { _ = conn.Close() }() // a client retries
			n.serveStream(conn)
		}()
	}
}

// idleDNS is the time after which an idle connection is closed.
const idleDNS = 30 * time.Second

// serveStream answers the requests of a TCP connection, each prefixed with its length, until the connection ends.
func (n *names) serveStream(conn net.Conn) {
	for {
		var size uint16
		if conn.SetDeadline(time.Now().Add(idleDNS)) != nil || binary.Read(conn, binary.BigEndian, &size) != nil ||
			size > maxDNSRequest {
			return
		}
		request := make([]byte, size)
		if _, err := io.ReadFull(conn, request); err != nil {
			return
		}
		answer := n.answer(request)
		if answer == nil {
			return
		}
		answer = append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...) //nolint:gosec // few records
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// answer returns the response to a request, or nil if the request is invalid.
func (n *names) answer(request []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(request); err != nil || m.Response || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	addresses, ok := n.lookup(q.Name.String())
	out := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID:                 m.ID,
			Response:           true,
			Authoritative:      true,
			RecursionDesired:   m.RecursionDesired,
			RecursionAvailable: true,
		},
		Questions: m.Questions,
	}
	if !ok {
		out.RCode = dnsmessage.RCodeNameError
	}
	out.Answers = records(q, addresses)
	answer, err := out.Pack()
	if err != nil {
		return nil
	}
	return answer
}

// records returns the resource records for a question.
func records(q dnsmessage.Question, addresses []netip.Addr) []dnsmessage.Resource {
	var out []dnsmessage.Resource
	for _, a := range addresses {
		r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}}
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			r.Body = &dnsmessage.AResource{A: a.As4()}
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			r.Body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		default:
			continue
		}
		out = append(out, r)
	}
	return out
}
