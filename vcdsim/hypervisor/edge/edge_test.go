// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMain(m *testing.M) { testtime.Main(m) }

func document(path, id, body string) vcdsim.Document {
	return vcdsim.Document{Path: path, ID: id, Body: json.RawMessage(body)}
}

func at(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

func TestTable(t *testing.T) {
	ports := `"servicePorts": [{"portStart": 80, "portEnd": 81, "tcpUdpProfile": {"type": "TCP_PROXY"}}]`
	members := document(poolPath, "p", `{"defaultPort": 30080, "algorithm": "ROUND_ROBIN", "members": [
		{"ipAddress": "10.0.0.5", "port": 30081, "ratio": 2}, {"ipAddress": "10.0.0.6"}, {"ipAddress": "10.0.0.7", "enabled": false}]}`)
	for _, tc := range []struct {
		name string
		docs []vcdsim.Document
		want []Route
	}{
		{
			name: "a range of ports, members with and without ports",
			docs: []vcdsim.Document{
				members,
				document(servicePath, "s", `{"name": "s", "virtualIpAddress": "203.0.113.9", "loadBalancerPoolRef": {"id": "p"}, `+ports+`}`),
			},
			want: []Route{
				{
					Listener: Listener{"tcp", at("203.0.113.9:80")},
					Name:     "s",
					Pool:     "p",
					Monitor:  "TCP",
					Targets:  []Target{{at("10.0.0.5:30081"), 2}, {at("10.0.0.6:30080"), 1}},
				},
				{
					Listener: Listener{"tcp", at("203.0.113.9:81")},
					Name:     "s",
					Pool:     "p",
					Monitor:  "TCP",
					Targets:  []Target{{at("10.0.0.5:30081"), 2}, {at("10.0.0.6:30080"), 1}},
				},
			},
		},
		{
			name: "UDP to the addresses of a group",
			docs: []vcdsim.Document{
				document(groupPath, "g", `{"ipAddresses": ["10.0.0.5", "10.0.0.8-10.0.0.9"]}`),
				document(poolPath, "p", `{"defaultPort": 53, "algorithm": "LEAST_CONNECTIONS", "memberGroupRef": {"id": "g"}, "healthMonitors": [{"type": "UDP"}]}`),
				document(servicePath, "s", `{"name": "s", "ipv6VirtualIpAddress": "2001:db8::9", "loadBalancerPoolRef": {"id": "p"},
				"servicePorts": [{"portStart": 53, "tcpUdpProfile": {"type": "UDP_FAST_PATH"}}]}`),
			},
			want: []Route{{
				Listener: Listener{"udp", at("[2001:db8::9]:53")},
				Name:     "s",
				Pool:     "p",
				Monitor:  "UDP",
				Least:    true,
				Targets:  []Target{{at("10.0.0.5:53"), 1}, {at("10.0.0.8:53"), 1}, {at("10.0.0.9:53"), 1}},
			}},
		},
		{
			name: "a virtual service that is disabled or has no pool",
			docs: []vcdsim.Document{
				members,
				document(servicePath, "s", `{"enabled": false, "virtualIpAddress": "203.0.113.9", "loadBalancerPoolRef": {"id": "p"}, `+ports+`}`),
				document(servicePath, "t", `{"virtualIpAddress": "203.0.113.8", "loadBalancerPoolRef": {"id": "gone"}, `+ports+`}`),
			},
		},
		{
			name: "a disabled pool still listens",
			docs: []vcdsim.Document{
				document(poolPath, "p", `{"enabled": false, "defaultPort": 1, "members": [{"ipAddress": "10.0.0.6"}]}`),
				document(servicePath, "s", `{"name": "s", "virtualIpAddress": "203.0.113.9", "loadBalancerPoolRef": {"id": "p"}, "servicePorts": [{"portStart": 1}]}`),
			},
			want: []Route{{Listener: Listener{"tcp", at("203.0.113.9:1")}, Name: "s", Pool: "p", Monitor: "TCP"}},
		},
		{
			name: "a DNAT rule with the internal port of its profile",
			docs: []vcdsim.Document{
				document(profilePath, "a", `{"applicationPorts": [{"protocol": "UDP", "destinationPorts": ["5353"]}]}`),
				document(natPath, "n", `{"name": "n", "type": "DNAT", "externalAddresses": "203.0.113.7", "internalAddresses": "192.168.8.2",
				"dnatExternalPort": "53", "applicationPortProfile": {"id": "a"}}`),
			},
			want: []Route{{
				Listener: Listener{"udp", at("203.0.113.7:53")},
				Name:     "n",
				Targets:  []Target{{at("192.168.8.2:5353"), 1}},
			}},
		},
		{
			name: "rules that proxies cannot implement",
			docs: []vcdsim.Document{
				document(natPath, "n", `{"type": "DNAT", "externalAddresses": "203.0.113.7", "internalAddresses": "192.168.8.2"}`),
				document(natPath, "m", `{"type": "SNAT", "externalAddresses": "203.0.113.7", "dnatExternalPort": "1"}`),
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) { NewWithT(t).Expect(Table(tc.docs)).To(Equal(tc.want)) })
	}
}

// host is the network of the test machine.
type host struct{}

func (host) Listen(l Listener) (net.Listener, error) { return net.Listen(l.Network, l.At.String()) }
func (host) ListenPacket(l Listener) (net.PacketConn, error) {
	return net.ListenPacket(l.Network, l.At.String())
}

func (host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func free(g *WithT, network string) Listener {
	if network == "udp" {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { g.Expect(conn.Close()).To(Succeed()) }()
		return Listener{network, at(conn.LocalAddr().String())}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	return Listener{network, at(l.Addr().String())}
}

// echo responds with a name to every connection until the returned function is called.
func echo(g *WithT, name string) (Target, func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, name)
			_ = conn.Close()
		}
	}()
	return Target{at(l.Addr().String()), 1}, func() { _ = l.Close() }
}

func TestTheProxyFollowsRoutesAndHealth(t *testing.T) {
	g := NewWithT(t)
	a, closeA := echo(g, "a")
	b, closeB := echo(g, "b")
	defer closeB()
	p := New(host{}, slog.New(slog.DiscardHandler))
	defer p.Close()
	r := Route{Listener: free(g, "tcp"), Pool: "p", Monitor: "TCP", Targets: []Target{a, b}}
	ask := func() string {
		conn, err := net.Dial("tcp", r.At.String())
		if err != nil {
			return "refused"
		}
		defer func() { _ = conn.Close() }()
		data, err := io.ReadAll(conn)
		g.Expect(err).NotTo(HaveOccurred())
		return string(data)
	}
	p.Apply(t.Context(), []Route{r})
	g.Expect([]string{ask(), ask(), ask(), ask()}).To(ConsistOf("a", "a", "b", "b"))
	g.Eventually(p.Health).Should(Equal(map[string]Members{"p": {a.At: true, b.At: true}}))

	closeA()
	g.Eventually(p.Health).Should(Equal(map[string]Members{"p": {a.At: false, b.At: true}}))
	g.Expect([]string{ask(), ask()}).To(Equal([]string{"b", "b"}))

	r.Targets = nil
	p.Apply(t.Context(), []Route{r})
	g.Expect(ask()).To(BeEmpty(), "no member: the connection is closed")
	g.Expect(p.Health()).To(BeEmpty())
	p.Apply(t.Context(), nil)
	g.Eventually(ask).Should(Equal("refused"))
}

func TestPacketsReachATargetAndReturn(t *testing.T) {
	g := NewWithT(t)
	target, err := net.ListenPacket("udp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = target.Close() }()
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := target.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = target.WriteTo(append([]byte("re: "), buf[:n]...), from)
		}
	}()
	p := New(host{}, slog.New(slog.DiscardHandler))
	defer p.Close()
	r := Route{Listener: free(g, "udp"), Pool: "p", Monitor: "UDP", Targets: []Target{{at(target.LocalAddr().String()), 1}}}
	p.Apply(t.Context(), []Route{r})
	conn, err := net.Dial("udp", r.At.String())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	for _, text := range []string{"one", "two"} {
		_, err = io.WriteString(conn, text)
		g.Expect(err).NotTo(HaveOccurred())
		buf := make([]byte, 100)
		n, err := conn.Read(buf)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(buf[:n])).To(Equal("re: " + text))
	}
}

func TestWeightsDistributeConnections(t *testing.T) {
	targets := []Target{{Weight: 2}, {Weight: 1}}
	var got []int
	for n := range 6 {
		got = append(got, byWeight(targets, n))
	}
	NewWithT(t).Expect(got).To(Equal([]int{0, 0, 1, 0, 0, 1}))
}
