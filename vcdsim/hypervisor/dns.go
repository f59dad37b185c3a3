package hypervisor

import (
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// names are the DNS servers of all networks. They know the VMs that are on, by name and hostname, and nothing else.
type names struct {
	hub *hub

	mu      sync.Mutex
	records map[string][]netip.Addr
	servers map[netip.Addr]net.PacketConn
}

func newNames(h *hub) *names {
	return &names{hub: h, records: map[string][]netip.Addr{}, servers: map[netip.Addr]net.PacketConn{}}
}

func (n *names) close() {
	for _, s := range n.servers {
		_ = s.Close() // it is only read
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

func (n *names) serves(a netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.servers[a] != nil
}

// serve answers at an address of the hub.
func (n *names) serve(a netip.Addr) error {
	if n.serves(a) {
		return nil
	}
	var conn net.PacketConn
	err := n.hub.do(func() error {
		var err error
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 53)))
		return wrap("listening for DNS", err)
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.servers[a] = conn
	n.mu.Unlock()
	go n.read(conn)
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
			_, _ = conn.WriteTo(answer, from) // it will ask again
		}
	}
}

// answer returns the answer to a request, nil for what is none.
func (n *names) answer(request []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(request); err != nil || m.Response || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	n.mu.Lock()
	addresses, ok := n.records[strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))]
	n.mu.Unlock()
	out := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: m.ID, Response: true, Authoritative: true, RecursionDesired: m.RecursionDesired,
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

// records are those of the addresses that a question is about.
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
