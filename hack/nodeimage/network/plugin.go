// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
)

// bridge is the interface of the node that connects its pods.
const bridge = "cni0"

// protocol marks the routes of this program, so that routes to removed nodes can be found.
const protocol = 137

// routes are the routes of the node.
type routes interface {
	List() (map[netip.Prefix]netip.Addr, error)
	Replace(to netip.Prefix, via netip.Addr) error
	Delete(to netip.Prefix) error
}

// plugin is the network plug-in of one node.
type plugin struct {
	node   string
	file   string
	routes routes
	rules  func(ctx context.Context, ruleset string) error

	ruleset string // last applied ruleset
}

// apply configures the network of the node for the nodes of the cluster.
func (p *plugin) apply(ctx context.Context, nodes []*corev1.Node) error {
	var own []netip.Prefix
	var all []netip.Prefix
	wanted := map[netip.Prefix]netip.Addr{}
	for _, n := range nodes {
		cidrs := podCIDRs(n)
		all = append(all, cidrs...)
		if n.Name == p.node {
			own = cidrs
			continue
		}
		maps.Copy(wanted, routesTo(n, cidrs))
	}
	if len(own) == 0 {
		return fmt.Errorf("node %s has no pod CIDR yet", p.node)
	}
	return errors.Join(p.route(wanted), p.masquerade(ctx, all), p.configure(own))
}

// podCIDRs returns the valid pod CIDRs of a node.
func podCIDRs(n *corev1.Node) []netip.Prefix {
	var found []netip.Prefix
	for _, text := range n.Spec.PodCIDRs {
		if cidr, err := netip.ParsePrefix(text); err == nil {
			found = append(found, cidr)
		}
	}
	return found
}

// routesTo returns the routes to the CIDRs of a node, through the node's address of the same family.
func routesTo(n *corev1.Node, cidrs []netip.Prefix) map[netip.Prefix]netip.Addr {
	found := map[netip.Prefix]netip.Addr{}
	for _, text := range slices.Backward(internalIPs(n)) {
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		for _, cidr := range cidrs {
			if cidr.Addr().Is4() == address.Is4() {
				found[cidr] = address
			}
		}
	}
	return found
}

func (p *plugin) route(wanted map[netip.Prefix]netip.Addr) error {
	present, err := p.routes.List()
	if err != nil {
		return fmt.Errorf("listing routes: %w", err)
	}
	var errs []error
	for to, via := range wanted {
		if present[to] == via {
			continue
		}
		if err := p.routes.Replace(to, via); err != nil {
			errs = append(errs, fmt.Errorf("routing %s to %s: %w", to, via, err))
		}
	}
	for to := range present {
		if _, ok := wanted[to]; ok {
			continue
		}
		if err := p.routes.Delete(to); err != nil {
			errs = append(errs, fmt.Errorf("removing the route to %s: %w", to, err))
		}
	}
	return errors.Join(errs...)
}

// masquerade lets pods use the node's address for traffic out of the cluster. Traffic between pods keeps its addresses.
func (p *plugin) masquerade(ctx context.Context, cidrs []netip.Prefix) error {
	ruleset := ruleset(cidrs)
	if ruleset == p.ruleset {
		return nil
	}
	if err := p.rules(ctx, ruleset); err != nil {
		return fmt.Errorf("masquerading: %w", err)
	}
	p.ruleset = ruleset
	return nil
}

// ruleset replaces this program's table and no other.
func ruleset(cidrs []netip.Prefix) string {
	var out strings.Builder
	fmt.Fprint(&out, "table inet node-network {}\ndelete table inet node-network\ntable inet node-network {\n"+
		"\tchain postrouting {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n")
	for _, family := range []struct {
		name string
		is4  bool
	}{{"ip", true}, {"ip6", false}} {
		var names []string
		for _, cidr := range cidrs {
			if cidr.Addr().Is4() == family.is4 {
				names = append(names, cidr.String())
			}
		}
		if slices.Sort(names); len(names) > 0 {
			set := strings.Join(names, ", ")
			fmt.Fprintf(&out, "\t\toifname != %q %[2]s saddr { %[3]s } %[2]s daddr != { %[3]s } masquerade\n", bridge,
				family.name, set)
		}
	}
	fmt.Fprint(&out, "\t}\n}\n")
	return out.String()
}

// configure writes the configuration file, which makes the node Ready. It runs last.
func (p *plugin) configure(own []netip.Prefix) error {
	content, err := conflist(own)
	if err != nil {
		return err
	}
	if present, err := os.ReadFile(p.file); err == nil && bytes.Equal(present, content) {
		return nil
	}
	// The runtime reads every file in the folder with the suffix .conflist.
	temp := filepath.Join(filepath.Dir(p.file), ".node-network.unfinished")
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return fmt.Errorf("writing the configuration of the network: %w", err)
	}
	return os.Rename(temp, p.file)
}

// conflist returns the configuration of the reference plug-ins.
func conflist(own []netip.Prefix) ([]byte, error) {
	type object = map[string]any
	ranges := make([][]object, 0, len(own))
	defaults := make([]object, 0, len(own))
	for _, cidr := range own {
		ranges = append(ranges, []object{{"subnet": cidr.String()}})
		everywhere := "::/0"
		if cidr.Addr().Is4() {
			everywhere = "0.0.0.0/0"
		}
		defaults = append(defaults, object{"dst": everywhere})
	}
	return json.MarshalIndent(object{
		"cniVersion": "1.0.0",
		"name":       "node-network",
		"plugins": []object{
			{
				"type":        "bridge",
				"bridge":      bridge,
				"isGateway":   true,
				"hairpinMode": true,
				"ipam":        object{"type": "host-local", "ranges": ranges, "routes": defaults},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
}

// nft applies a ruleset atomically.
func nft(ctx context.Context, ruleset string) error {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(ruleset)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// kernel implements routes with the routes of the kernel.
type kernel struct{}

func (kernel) List() (map[netip.Prefix]netip.Addr, error) {
	found := map[netip.Prefix]netip.Addr{}
	list, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: protocol},
		netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if r.Dst == nil {
			continue
		}
		to, err := netip.ParsePrefix(r.Dst.String())
		if err != nil {
			continue
		}
		via, _ := netip.AddrFromSlice(r.Gw)
		found[to] = via.Unmap()
	}
	return found, nil
}

func (kernel) Replace(to netip.Prefix, via netip.Addr) error {
	return netlink.RouteReplace(&netlink.Route{Dst: network(to), Gw: via.AsSlice(), Protocol: protocol})
}

func (kernel) Delete(to netip.Prefix) error {
	return netlink.RouteDel(&netlink.Route{Dst: network(to), Protocol: protocol})
}

func network(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
