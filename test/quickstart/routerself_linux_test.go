// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/server"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

// TestRouterAcceptsOnlyNodesWithItsPassword changes the password of a router on the loopback interface.
func TestRouterAcceptsOnlyNodesWithItsPassword(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GODEBUG", "multipathtcp=0") // as in the process of the router
	const address = "127.0.0.1"
	network := netip.MustParsePrefix("127.0.0.0/8")
	port := freePort(t)
	bgp := speaker(t, &api.Global{
		Asn:             routerAS,
		RouterId:        address,
		ListenAddresses: []string{address},
		ListenPort:      port,
	})
	g.Expect(bgp.AddPeerGroup(t.Context(), &api.AddPeerGroupRequest{PeerGroup: peerGroup("")})).To(Succeed())
	sessions := func() string { return handleRequest(t.Context(), bgp, network, listSessions) }
	node := func(password string) *server.BgpServer {
		n := speaker(t, &api.Global{Asn: nodesAS, RouterId: "127.0.0.2", ListenPort: -1})
		g.Expect(n.AddPeer(t.Context(), &api.AddPeerRequest{Peer: &api.Peer{
			Conf:      &api.PeerConf{NeighborAddress: address, PeerAsn: routerAS, AuthPassword: password},
			Timers:    &api.Timers{Config: &api.TimersConfig{ConnectRetry: 2, HoldTime: 9, KeepaliveInterval: 3}},
			Transport: &api.Transport{RemotePort: uint32(port)},
		}})).To(Succeed())
		return n
	}

	for _, password := range []string{"before", "after"} {
		g.Expect(handleRequest(t.Context(), bgp, network, usePassword+password)).To(BeEmpty())

		wrong := node("another")
		g.Consistently(sessions, 5*time.Second, "100ms").Should(BeEmpty(), password)
		g.Expect(wrong.StopBgp(t.Context(), &api.StopBgpRequest{})).To(Succeed())
		right := node(password)
		g.Eventually(sessions, testtime.Patience, "100ms").Should(Equal(address), password)
		g.Expect(right.StopBgp(t.Context(), &api.StopBgpRequest{})).To(Succeed())
		g.Eventually(sessions, testtime.Patience, "100ms").Should(BeEmpty(), password)
	}
}

// speaker starts a BGP server. The cleanup of the test stops it.
func speaker(t *testing.T, global *api.Global) *server.BgpServer {
	t.Helper()
	bgp := server.NewBgpServer(server.LoggerOption(&routerLog{}))
	go bgp.Serve()
	t.Cleanup(bgp.Stop)
	NewWithT(t).Expect(bgp.StartBgp(context.WithoutCancel(t.Context()), &api.StartBgpRequest{Global: global})).To(Succeed())
	return bgp
}

// freePort returns a free port of the loopback interface. It is not reserved.
func freePort(t *testing.T) int32 {
	t.Helper()
	g := NewWithT(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	at, ok := listener.Addr().(*net.TCPAddr)
	g.Expect(ok).To(BeTrue())
	g.Expect(listener.Close()).To(Succeed())
	return int32(at.Port)
}
