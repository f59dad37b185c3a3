// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A hub is the network namespace that connects the VMs. It has a bridge per network and the addresses of the edge
// gateways. It has no connection to the network of the machine.
type hub struct {
	ns     netns.NsHandle
	handle *netlink.Handle
	log    *slog.Logger

	mu       sync.Mutex
	networks map[string]*network // by segment
	names    *names
	external map[netip.Addr]bool // addresses on the loopback interface
	kept     map[netip.Addr]bool // external addresses that edge gateways do not own
}

// A network is a simulated network with its bridge.
type network struct {
	name   string
	prefix netip.Prefix
	routed bool
	link   netlink.Link
	dhcp   *dhcp
}

func newHub(log *slog.Logger) (*hub, error) {
	h := &hub{
		log:      log,
		networks: map[string]*network{},
		external: map[netip.Addr]bool{},
		kept:     map[netip.Addr]bool{},
	}
	err := onThread(func() error {
		var err error
		if h.ns, err = netns.New(); err != nil {
			return fmt.Errorf("making a network namespace: %w", err)
		}
		return writeFile("/proc/sys/net/ipv4/ip_forward", "1")
	})
	if err != nil {
		return nil, err
	}
	if h.handle, err = netlink.NewHandleAt(h.ns); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the network namespace: %w", err), h.ns.Close())
	}
	lo, err := h.handle.LinkByName("lo")
	if err == nil {
		err = h.handle.LinkSetUp(lo)
	}
	if err != nil {
		h.close()
		return nil, fmt.Errorf("setting up the loopback interface: %w", err)
	}
	h.names = newNames(h)
	return h, nil
}

func (h *hub) close() {
	for _, n := range h.networks {
		n.dhcp.close()
	}
	if h.names != nil {
		h.names.close()
	}
	h.handle.Close()
	_ = h.ns.Close() // deletes everything in it
}

// onThread runs f on a thread that ends afterwards, so that f may change the state of the thread.
func onThread(f func() error) error {
	done := make(chan error)
	onOwnThread(func() { done <- f() })
	return <-done
}

// onOwnThread runs f in the background on a thread that ends with f. It never uses the first thread of this process,
// which Go keeps forever with its namespaces.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread() // stays locked, unless it is the first thread
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread() // on another thread: the first is locked until now
			close(locked)
			f()
		}()
		<-locked
		runtime.UnlockOSThread()
	}()
}

// do runs f in the namespace of the hub. Sockets that f opens remain in it.
func (h *hub) do(f func() error) error {
	return onThread(func() error {
		if err := netns.Set(h.ns); err != nil {
			return fmt.Errorf("entering the network namespace: %w", err)
		}
		return f()
	})
}

// cardNames returns the interface names of a VM's cards in the guest.
func cardNames() []string {
	return []string{
		"ens192", "ens224", "ens256", "ens161", "ens193", "ens225", "ens257", "ens162", "ens194", "ens226",
	}
}

// outerName returns the name of a card's end in the hub.
func outerName(mac string) string { return "v" + strings.ReplaceAll(strings.ToLower(mac), ":", "") }

// connect creates the cards in a VM's namespace. onLease is called when DHCP assigned an address to one of them.
func (h *hub) connect(vm vcdsim.GuestVM, ns netns.NsHandle, onLease func(mac, address string)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := cardNames()
	for _, nic := range vm.NICs {
		if nic.Index >= len(names) {
			return fmt.Errorf("card %d: a VM has at most %d", nic.Index, len(names))
		}
		if err := h.connectOne(nic, names[nic.Index], ns, onLease); err != nil {
			return fmt.Errorf("connecting card %d: %w", nic.Index, err)
		}
	}
	h.names.add(vm)
	return nil
}

func (h *hub) connectOne(nic vcdsim.GuestNIC, name string, ns netns.NsHandle, onLease func(mac, address string)) error {
	mac, err := net.ParseMAC(nic.MAC)
	if err != nil {
		return fmt.Errorf("its address: %w", err)
	}
	outer := outerName(nic.MAC)
	if err := h.removeCard(outer); err != nil {
		return err
	}
	veth := &netlink.Veth{
		LinkAttrs:        netlink.LinkAttrs{Name: outer},
		PeerName:         name,
		PeerHardwareAddr: mac,
		PeerNamespace:    netlink.NsFd(ns),
	}
	if nic.Segment == "" {
		return wrap("making the card", h.handle.LinkAdd(veth))
	}
	n, err := h.network(nic)
	if err != nil {
		return err
	}
	if nic.Mode == "DHCP" && nic.Address.IsValid() {
		n.dhcp.offer(nic, func(address string) { onLease(nic.MAC, address) })
	}
	veth.MasterIndex = n.link.Attrs().Index
	if err := h.handle.LinkAdd(veth); err != nil {
		return fmt.Errorf("making the card: %w", err)
	}
	return wrap("setting up the card", h.handle.LinkSetUp(veth))
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// disconnect removes the cards of a VM.
func (h *hub) disconnect(vm vcdsim.GuestVM) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names.remove(vm)
	var errs []error
	for _, nic := range vm.NICs {
		errs = append(errs, h.removeCard(outerName(nic.MAC)))
		if n := h.networks[nic.Segment]; n != nil {
			n.dhcp.withdraw(nic.MAC)
		}
	}
	return errors.Join(errs...)
}

func (h *hub) removeCard(name string) error {
	link, err := h.handle.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = h.handle.LinkDel(link)
	}
	if err != nil && !errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf("removing a card: %w", err)
	}
	return nil
}

// network returns the network of a card, with its bridge, gateway, DHCP and DNS.
func (h *hub) network(nic vcdsim.GuestNIC) (*network, error) {
	if n := h.networks[nic.Segment]; n != nil {
		return n, nil
	}
	n := &network{name: nic.Network, prefix: nic.Prefix, routed: nic.Routed && nic.Gateway.IsValid()}
	for _, other := range h.networks {
		if n.routed && other.routed && n.prefix.Overlaps(other.prefix) {
			return nil, fmt.Errorf("network %s (%s) overlaps %s (%s): all routed networks meet in one namespace",
				n.name, n.prefix, other.name, other.prefix)
		}
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("br%d", len(h.networks))}}
	if err := h.handle.LinkAdd(bridge); err != nil {
		return nil, fmt.Errorf("making a bridge: %w", err)
	}
	n.link = bridge
	if err := h.serve(n, nic); err != nil {
		_ = h.handle.LinkDel(bridge) // the first error is more specific
		return nil, err
	}
	h.networks[nic.Segment] = n
	h.log.Info("A network", "name", n.name, "prefix", n.prefix, "bridge", bridge.Name, "routed", n.routed)
	return n, nil
}

// serve provides the gateway's services on a network.
func (h *hub) serve(n *network, nic vcdsim.GuestNIC) error {
	if n.routed {
		if err := h.assign(n.link, netip.PrefixFrom(nic.Gateway, nic.Prefix.Bits())); err != nil {
			return err
		}
	}
	if err := h.handle.LinkSetUp(n.link); err != nil {
		return fmt.Errorf("setting up a bridge: %w", err)
	}
	var err error
	if n.dhcp, err = h.serveDHCP(n.link.Attrs().Name, nic); err != nil {
		return err
	}
	for _, a := range nic.DNS {
		if a != nic.Gateway {
			if err := h.addExternal(a); err != nil {
				return err
			}
			h.kept[a] = true
		}
		if err := h.names.serve(a); err != nil {
			h.log.Warn("No DNS", "address", a, "error", err)
		}
	}
	return nil
}

func (h *hub) assign(link netlink.Link, p netip.Prefix) error {
	address := &netlink.Addr{
		IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())},
	}
	if p.Addr().Is6() {
		address.Flags = unix.IFA_F_NODAD
	}
	if err := h.handle.AddrAdd(link, address); err != nil && !errors.Is(err, syscall.EEXIST) {
		return fmt.Errorf("adding the address %s: %w", p, err)
	}
	return nil
}

// addExternal adds an address to the hub unless it exists.
func (h *hub) addExternal(a netip.Addr) error {
	if h.external[a] {
		return nil
	}
	lo, err := h.handle.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback interface: %w", err)
	}
	if err := h.assign(lo, netip.PrefixFrom(a, a.BitLen())); err != nil {
		return err
	}
	h.external[a] = true
	return nil
}

// setExternal sets the addresses of edge gateways and removes all others, except the addresses in kept.
func (h *hub) setExternal(addresses []netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, a := range addresses {
		if !h.external[a] && !h.gateway(a) {
			errs = append(errs, h.addExternal(a))
		}
	}
	for a := range h.external {
		if slices.Contains(addresses, a) || h.kept[a] {
			continue
		}
		lo, err := h.handle.LinkByName("lo")
		if err == nil {
			err = h.handle.AddrDel(lo, &netlink.Addr{
				IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())},
			})
		}
		errs = append(errs, wrap("removing an address", err))
		delete(h.external, a)
	}
	return errors.Join(errs...)
}

// gateway reports whether an address belongs to an interface of the hub.
func (h *hub) gateway(a netip.Addr) bool {
	addresses, err := h.handle.AddrList(nil, netlink.FAMILY_ALL)
	return err == nil && slices.ContainsFunc(addresses, func(x netlink.Addr) bool {
		have, ok := netip.AddrFromSlice(x.IP)
		return ok && have.Unmap() == a
	})
}
