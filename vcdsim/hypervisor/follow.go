// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor/edge"
)

const followEvery = 500 * time.Millisecond

// Follow carries the traffic of a simulator's edge gateways until ctx ends. It also removes the files of independent
// disks that no longer exist in the simulator.
func (h *Hypervisor) Follow(ctx context.Context, sim *vcdsim.Simulator) {
	proxy := edge.New(h.hub, h.log)
	defer proxy.Close() //nolint:contextcheck // ctx has ended by then
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		// List before State, so that the state contains each listed disk that still exists.
		disks, listed := h.state.listDisks()
		if err := errors.Join(listed, h.follow(ctx, proxy, sim.State(), disks)); err != nil {
			h.log.Error("Following the simulator", "error", err)
		}
		sim.ReportMembers(proxy.Health())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (h *Hypervisor) follow(ctx context.Context, proxy *edge.Proxy, state vcdsim.State, disks []string) error {
	routes := edge.Table(state.Documents)
	var addresses []netip.Addr
	for _, r := range routes {
		addresses = append(addresses, r.At.Addr())
	}
	err := h.hub.setExternal(addresses)
	proxy.Apply(ctx, routes)
	return errors.Join(err, pruneDisks(disks, state.Disks))
}

// listDisks lists the files of independent disks.
func (s *stateDir) listDisks() ([]string, error) {
	files, err := filepath.Glob(s.disk("*"))
	return files, wrap("reading disks", err)
}

// pruneDisks removes the files of disks that no longer exist.
func pruneDisks(files []string, disks []vcdsim.Disk) error {
	var errs []error
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".img")
		if !slices.ContainsFunc(disks, func(d vcdsim.Disk) bool { return d.ID == id }) {
			errs = append(errs, wrap("removing a disk", os.Remove(file)))
		}
	}
	return errors.Join(errs...)
}

// Dial connects to an address from the namespace of the edge gateways, which reaches only VMs, virtual services and
// NAT rules.
func (h *Hypervisor) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return h.hub.Dial(ctx, network, address)
}

// Start starts a program, such as a router, in the namespace of the edge gateways. It does not change the program
// otherwise.
func (h *Hypervisor) Start(cmd *exec.Cmd) error { return h.hub.do(cmd.Start) }

// Listen listens in the namespace of the edge gateways. VMs on routed networks can reach the address.
func (h *Hypervisor) Listen(address netip.AddrPort) (net.Listener, error) {
	h.hub.mu.Lock()
	err := h.hub.addExternal(address.Addr())
	if err == nil {
		h.hub.kept[address.Addr()] = true
	}
	h.hub.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return h.hub.Listen(edge.Listener{Network: "tcp", At: address})
}

// Listen implements edge.Wire.
func (h *hub) Listen(l edge.Listener) (listener net.Listener, err error) {
	err = h.do(func() error {
		listener, err = (&net.ListenConfig{}).Listen(context.Background(), l.Network, l.At.String())
		return err
	})
	return listener, err
}

// ListenPacket implements edge.Wire.
func (h *hub) ListenPacket(l edge.Listener) (conn net.PacketConn, err error) {
	err = h.do(func() error {
		conn, err = (&net.ListenConfig{}).ListenPacket(context.Background(), l.Network, l.At.String())
		return err
	})
	return conn, err
}

// Dial implements edge.Wire. The host must be an IP address, because names are resolved on threads outside the
// namespace.
func (h *hub) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("the address %s: %w", address, err)
	}
	err = h.do(func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, at.String())
		return err
	})
	return conn, err
}
