// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/log"
	"github.com/osrg/gobgp/v3/pkg/server"
	"github.com/vishvananda/netlink"
)

// The autonomous systems of the router and of the nodes.
const (
	routerAS = 65001
	nodesAS  = 65000
)

// routerEnv makes this test's program a router instead, in the network namespace it is started in. Its value is the
// address of the router.
const routerEnv = "QUICKSTART_BGP_ROUTER"

// nodesGateway is the gateway of the network of the nodes.
const nodesGateway = "192.168.100.1"

// startRouter starts a router where edge gateways are. VMs of a network may be its BGP peers, and what they announce
// becomes routes of the kernel there. The test ends it.
func startRouter(t *testing.T) func(*quickstart) error {
	t.Helper()
	return func(q *quickstart) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(context.Background(), self) // it ends with its input
		cmd.Env = append(os.Environ(), routerEnv+"="+nodesGateway)
		cmd.Stdout = os.Stdout
		cmd.Stderr = os.Stderr
		input, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := q.booted.hypervisor.Start(cmd); err != nil {
			return fmt.Errorf("starting the router: %w", err)
		}
		t.Cleanup(func() {
			_ = input.Close() // it may have ended
			NewWithT(t).Expect(cmd.Wait()).To(Succeed(), "the router")
		})
		return nil
	}
}

// runRouter is the program of the router.
func runRouter(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	router := server.NewBgpServer(server.LoggerOption(&routerLog{}))
	go router.Serve()
	err := router.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{
		Asn:             routerAS,
		RouterId:        address,
		ListenAddresses: []string{"0.0.0.0"}, // The network's gateway comes with its first VM.
		ListenPort:      179,
	}})
	if err != nil {
		return fmt.Errorf("starting BGP: %w", err)
	}
	defer router.Stop()
	if err := acceptNodes(ctx, router, address); err != nil {
		return err
	}
	if err := followRoutes(ctx, router); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until the test ends
	return err
}

// acceptNodes lets all addresses of the router's network be peers.
func acceptNodes(ctx context.Context, router *server.BgpServer, address string) error {
	const group = "nodes"
	err := router.AddPeerGroup(ctx, &api.AddPeerGroupRequest{PeerGroup: &api.PeerGroup{
		Conf: &api.PeerGroupConf{PeerGroupName: group, PeerAsn: nodesAS},
		Timers: &api.Timers{Config: &api.TimersConfig{
			HoldTime:          9,
			KeepaliveInterval: 3,
		}},
	}})
	if err != nil {
		return fmt.Errorf("adding the peers: %w", err)
	}
	network := netip.PrefixFrom(netip.MustParseAddr(address), 24).Masked()
	return router.AddDynamicNeighbor(ctx, &api.AddDynamicNeighborRequest{DynamicNeighbor: &api.DynamicNeighbor{
		Prefix:    network.String(),
		PeerGroup: group,
	}})
}

// followRoutes makes the best paths routes of the kernel.
func followRoutes(ctx context.Context, router *server.BgpServer) error {
	best := &api.WatchEventRequest{Table: &api.WatchEventRequest_Table{
		Filters: []*api.WatchEventRequest_Table_Filter{{Type: api.WatchEventRequest_Table_Filter_BEST}},
	}}
	return router.WatchEvent(ctx, best, func(event *api.WatchEventResponse) {
		for _, path := range event.GetTable().GetPaths() {
			if err := setRoute(path); err != nil {
				fmt.Fprintln(os.Stderr, "router:", err)
			}
		}
	})
}

// setRoute adds or removes the route of a path.
func setRoute(path *api.Path) error {
	prefix := &api.IPAddressPrefix{}
	if err := path.GetNlri().UnmarshalTo(prefix); err != nil {
		return fmt.Errorf("reading a path: %w", err)
	}
	bits := int(prefix.GetPrefixLen())
	route := &netlink.Route{Dst: &net.IPNet{IP: net.ParseIP(prefix.GetPrefix()).To4(), Mask: net.CIDRMask(bits, 32)}}
	name := prefix.GetPrefix() + "/" + strconv.Itoa(bits)
	if path.GetIsWithdraw() {
		fmt.Fprintln(os.Stdout, "router: without", name)
		if err := netlink.RouteDel(route); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("removing the route to %s: %w", name, err)
		}
		return nil
	}
	for _, attribute := range path.GetPattrs() {
		hop := &api.NextHopAttribute{}
		if attribute.MessageIs(hop) && attribute.UnmarshalTo(hop) == nil {
			route.Gw = net.ParseIP(hop.GetNextHop())
		}
	}
	fmt.Fprintln(os.Stdout, "router:", name, "by", route.Gw)
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("adding the route to %s: %w", name, err)
	}
	return nil
}

// routerLog drops what BGP logs, but for errors.
type routerLog struct{}

// Panic implements log.Logger.
func (*routerLog) Panic(msg string, fields log.Fields) { panic(fmt.Sprint(msg, fields)) }

// Fatal implements log.Logger.
func (*routerLog) Fatal(msg string, fields log.Fields) { panic(fmt.Sprint(msg, fields)) }

// Error implements log.Logger.
func (*routerLog) Error(msg string, fields log.Fields) {
	fmt.Fprintln(os.Stderr, "router:", msg, fields)
}

// Warn implements log.Logger.
func (*routerLog) Warn(string, log.Fields) {}

// Info implements log.Logger.
func (*routerLog) Info(string, log.Fields) {}

// Debug implements log.Logger.
func (*routerLog) Debug(string, log.Fields) {}

// SetLevel implements log.Logger.
func (*routerLog) SetLevel(log.LogLevel) {}

// GetLevel implements log.Logger.
func (*routerLog) GetLevel() log.LogLevel { return log.ErrorLevel }
