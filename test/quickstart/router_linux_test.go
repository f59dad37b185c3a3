// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
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
	"strings"
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

// routerEnv is the environment variable that makes this test binary run as a router, in the network namespace in which
// it is started. Its value is the address of the router.
const routerEnv = "QUICKSTART_BGP_ROUTER"

// nodesGateway is the gateway of the network of the nodes.
const nodesGateway = "192.168.100.1"

// A router is a BGP peer of the nodes, in a separate process. The test controls it through its standard input.
type router struct {
	password string // the initial password of sessions; empty for none

	input  io.WriteCloser
	output *bufio.Scanner
}

// start starts the router in the network namespace of edge gateways. VMs can be its BGP peers, and their announcements
// become kernel routes there. The cleanup of the test stops the router.
func (r *router) start(t *testing.T, q *quickstart) error {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), self) // it exits at the end of its input
	cmd.Env = append(os.Environ(), routerEnv+"="+nodesGateway, withoutMultipath)
	cmd.Stderr = os.Stderr
	if r.input, err = cmd.StdinPipe(); err != nil {
		return err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	r.output = bufio.NewScanner(output)
	if err := q.booted.hypervisor.Start(cmd); err != nil {
		return fmt.Errorf("starting the router: %w", err)
	}
	t.Cleanup(func() {
		_ = r.input.Close() // the router may have exited
		NewWithT(t).Expect(cmd.Wait()).To(Succeed(), "the router")
	})
	return r.setPassword(r.password)
}

// withoutMultipath makes listeners use plain TCP. A multipath TCP socket, which Go prefers, does not support a
// password.
const withoutMultipath = "GODEBUG=multipathtcp=0"

// Requests to the router, one per line. A password follows the first.
const (
	usePassword  = "password "
	listSessions = "sessions"
)

// send sends a request and returns the response.
func (r *router) send(request string) (string, error) {
	if _, err := fmt.Fprintln(r.input, request); err != nil {
		return "", fmt.Errorf("sending a request to the router: %w", err)
	}
	if !r.output.Scan() {
		return "", errors.Join(errors.New("the router does not respond"), r.output.Err())
	}
	return r.output.Text(), nil
}

// setPassword changes the password of new sessions. Established sessions keep theirs.
func (r *router) setPassword(password string) error {
	response, err := r.send(usePassword + password)
	if err == nil && response != "" {
		err = fmt.Errorf("the router: %s", response)
	}
	return err
}

// sessions returns the addresses of the nodes with established sessions.
func (r *router) sessions() ([]string, error) {
	response, err := r.send(listSessions)
	return strings.Fields(response), err
}

// runRouter is the main function of the router process.
func runRouter(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	bgp := server.NewBgpServer(server.LoggerOption(&routerLog{}))
	go bgp.Serve()
	err := bgp.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{
		Asn:             routerAS,
		RouterId:        address,
		ListenAddresses: []string{"0.0.0.0"}, // The gateway of the network is created with its first VM.
		ListenPort:      179,
	}})
	if err != nil {
		return fmt.Errorf("starting BGP: %w", err)
	}
	defer bgp.Stop()
	if err := bgp.AddPeerGroup(ctx, &api.AddPeerGroupRequest{PeerGroup: peerGroup("")}); err != nil {
		return fmt.Errorf("adding the peers: %w", err)
	}
	if err := followRoutes(ctx, bgp); err != nil {
		return err
	}
	network := netip.PrefixFrom(netip.MustParseAddr(address), 24).Masked()
	for requests := bufio.NewScanner(os.Stdin); requests.Scan(); { // until the test ends
		fmt.Fprintln(os.Stdout, handleRequest(ctx, bgp, network, requests.Text()))
	}
	return nil
}

// handleRequest handles a request of the test, and returns the response.
func handleRequest(ctx context.Context, bgp *server.BgpServer, network netip.Prefix, request string) string {
	if password, ok := strings.CutPrefix(request, usePassword); ok {
		if err := acceptNodes(ctx, bgp, network, password); err != nil {
			return err.Error()
		}
		return ""
	}
	var up []string
	err := bgp.ListPeer(ctx, &api.ListPeerRequest{}, func(p *api.Peer) {
		if p.GetState().GetSessionState() == api.PeerState_ESTABLISHED {
			up = append(up, p.GetState().GetNeighborAddress())
		}
	})
	if err != nil {
		return err.Error()
	}
	return strings.Join(up, " ")
}

const nodesGroup = "nodes"

func peerGroup(password string) *api.PeerGroup {
	return &api.PeerGroup{
		Conf: &api.PeerGroupConf{PeerGroupName: nodesGroup, PeerAsn: nodesAS, AuthPassword: password},
		Timers: &api.Timers{Config: &api.TimersConfig{
			HoldTime:          9,
			KeepaliveInterval: 3,
		}},
	}
}

// acceptNodes accepts peers with the password from all addresses of the network.
func acceptNodes(ctx context.Context, bgp *server.BgpServer, network netip.Prefix, password string) error {
	// The kernel has one password for a range, so the previous one is removed first.
	if err := bgp.DeleteDynamicNeighbor(ctx, &api.DeleteDynamicNeighborRequest{
		Prefix:    network.String(),
		PeerGroup: nodesGroup,
	}); err != nil {
		return fmt.Errorf("removing the range of peers: %w", err)
	}
	if _, err := bgp.UpdatePeerGroup(ctx, &api.UpdatePeerGroupRequest{PeerGroup: peerGroup(password)}); err != nil {
		return fmt.Errorf("changing the password: %w", err)
	}
	return bgp.AddDynamicNeighbor(ctx, &api.AddDynamicNeighborRequest{DynamicNeighbor: &api.DynamicNeighbor{
		Prefix:    network.String(),
		PeerGroup: nodesGroup,
	}})
}

// followRoutes installs the best paths as kernel routes.
func followRoutes(ctx context.Context, bgp *server.BgpServer) error {
	best := &api.WatchEventRequest{Table: &api.WatchEventRequest_Table{
		Filters: []*api.WatchEventRequest_Table_Filter{{Type: api.WatchEventRequest_Table_Filter_BEST}},
	}}
	return bgp.WatchEvent(ctx, best, func(event *api.WatchEventResponse) {
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
		fmt.Fprintln(os.Stderr, "router: without", name)
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
	fmt.Fprintln(os.Stderr, "router:", name, "by", route.Gw)
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("adding the route to %s: %w", name, err)
	}
	return nil
}

// routerLog discards the BGP log, except for errors and warnings.
type routerLog struct{}

// Panic implements log.Logger.
func (*routerLog) Panic(msg string, fields log.Fields) { panic(fmt.Sprint(msg, fields)) }

// Fatal implements log.Logger.
func (*routerLog) Fatal(msg string, fields log.Fields) { panic(fmt.Sprint(msg, fields)) }

// Error implements log.Logger.
func (*routerLog) Error(msg string, fields log.Fields) {
	fmt.Fprintln(os.Stderr, "router:", msg, fields)
}

// Warn implements log.Logger. The warnings report a password that is not used.
func (*routerLog) Warn(msg string, fields log.Fields) {
	fmt.Fprintln(os.Stderr, "router:", msg, fields)
}

// Info implements log.Logger.
func (*routerLog) Info(string, log.Fields) {}

// Debug implements log.Logger.
func (*routerLog) Debug(string, log.Fields) {}

// SetLevel implements log.Logger.
func (*routerLog) SetLevel(log.LogLevel) {}

// GetLevel implements log.Logger.
func (*routerLog) GetLevel() log.LogLevel { return log.ErrorLevel }
