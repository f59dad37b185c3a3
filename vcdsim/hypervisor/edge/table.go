// SPDX-License-Identifier: Apache-2.0

// Package edge carries the traffic of simulated edge gateways. It derives a table of routes from the virtual
// services, pools and NAT rules of the simulator, and runs proxies that follow the table. It knows documents of VCD's
// JSON API and sockets, but not VMs.
package edge

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A Listener is an address that accepts connections.
type Listener struct {
	Network string // tcp or udp
	At      netip.AddrPort
}

// A Target is a member that receives connections.
type Target struct {
	At     netip.AddrPort
	Weight int
}

// A Route leads from a listener to targets.
type Route struct {
	Listener

	Name    string // name of the virtual service or NAT rule
	Pool    string // URN of the pool; empty for NAT rules, whose targets are not probed
	Monitor string // kind of health monitor
	Targets []Target
	// Least selects the target with the fewest connections. Otherwise connections are distributed by weight.
	Least bool
}

// Paths of the documents that define routes.
const (
	servicePath = "1.0.0/loadBalancer/virtualServices"
	poolPath    = "1.0.0/loadBalancer/pools"
	groupPath   = "1.0.0/firewallGroups"
	natPath     = "1.0.0/edgeGateways/{gateway}/nat/rules"
	profilePath = "1.0.0/applicationPortProfiles"
)

type reference struct {
	ID string `json:"id"`
}

type service struct {
	Name    string    `json:"name"`
	Enabled *bool     `json:"enabled"`
	IPv4    string    `json:"virtualIpAddress"`
	IPv6    string    `json:"ipv6VirtualIpAddress"`
	Pool    reference `json:"loadBalancerPoolRef"`
	Ports   []struct {
		Start   int `json:"portStart"`
		End     int `json:"portEnd"`
		Profile struct {
			Type string `json:"type"`
		} `json:"tcpUdpProfile"`
	} `json:"servicePorts"`
}

type pool struct {
	Enabled   *bool     `json:"enabled"`
	Algorithm string    `json:"algorithm"`
	Port      int       `json:"defaultPort"`
	Group     reference `json:"memberGroupRef"`
	Members   []struct {
		Enabled *bool  `json:"enabled"`
		Address string `json:"ipAddress"`
		Port    int    `json:"port"`
		Ratio   int    `json:"ratio"`
	} `json:"members"`
	Monitors []struct {
		Type string `json:"type"`
	} `json:"healthMonitors"`
}

type group struct {
	Addresses []string `json:"ipAddresses"`
}

type rule struct {
	Name     string    `json:"name"`
	Enabled  *bool     `json:"enabled"`
	Type     string    `json:"type"`
	External string    `json:"externalAddresses"`
	Internal string    `json:"internalAddresses"`
	Port     string    `json:"dnatExternalPort"`
	Profile  reference `json:"applicationPortProfile"`
}

type profile struct {
	Ports []struct {
		Protocol     string   `json:"protocol"`
		Destinations []string `json:"destinationPorts"`
	} `json:"applicationPorts"`
}

// documents are the documents of the simulator, by path and ID.
type documents map[string]map[string]json.RawMessage

// Table returns the routes of all edge gateways, sorted by listener. Services and rules without an address, port or
// pool have no routes.
func Table(from []vcdsim.Document) []Route {
	docs := documents{}
	var out []Route
	for _, d := range from {
		if docs[d.Path] == nil {
			docs[d.Path] = map[string]json.RawMessage{}
		}
		docs[d.Path][d.ID] = d.Body
	}
	for _, d := range from {
		switch d.Path {
		case servicePath:
			out = append(out, docs.service(d.Body)...)
		case natPath:
			out = append(out, docs.rule(d.Body)...)
		}
	}
	slices.SortStableFunc(out, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Network, b.Network), a.At.Compare(b.At))
	})
	return slices.CompactFunc(out, func(a, b Route) bool { return a.Listener == b.Listener })
}

// read returns the document with a path and an ID. The second result reports whether it exists and is valid.
func read[T any](docs documents, path, id string) (T, bool) {
	return parse[T](docs[path][id])
}

func parse[T any](body json.RawMessage) (T, bool) {
	var out T
	return out, len(body) > 0 && json.Unmarshal(body, &out) == nil
}

func isEnabled(enabled *bool) bool { return enabled == nil || *enabled }

const maxPorts = 1000 // per range; each port is a socket

func (docs documents) service(body json.RawMessage) []Route {
	s, ok := parse[service](body)
	p, found := read[pool](docs, poolPath, s.Pool.ID)
	if !ok || !found || !isEnabled(s.Enabled) {
		return nil
	}
	var out []Route
	for _, text := range []string{s.IPv4, s.IPv6} {
		vip, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		for _, ports := range s.Ports {
			for port := ports.Start; port <= min(max(ports.End, ports.Start), ports.Start+maxPorts); port++ {
				at, ok := endpoint(vip, port)
				if !ok {
					continue
				}
				r := Route{Listener: Listener{"tcp", at}, Name: s.Name, Pool: s.Pool.ID}
				if ports.Profile.Type == "UDP_FAST_PATH" {
					r.Network = "udp"
				}
				out = append(out, docs.fill(r, p))
			}
		}
	}
	return out
}

// fill sets the fields of a route that come from its pool.
func (docs documents) fill(r Route, p pool) Route {
	r.Least = p.Algorithm == "LEAST_CONNECTIONS"
	r.Monitor = "TCP"
	if len(p.Monitors) > 0 {
		r.Monitor = p.Monitors[0].Type
	}
	if !isEnabled(p.Enabled) {
		return r
	}
	if g, ok := read[group](docs, groupPath, p.Group.ID); ok {
		r.Targets = g.targets(p.Port)
	} else {
		r.Targets = p.targets()
	}
	return r
}

// targets returns the addresses of a group with the port of the pool.
func (g group) targets(port int) []Target {
	var out []Target
	for _, text := range g.Addresses {
		for _, a := range addresses(text) {
			if at, ok := endpoint(a, port); ok {
				out = append(out, Target{at, 1})
			}
		}
	}
	return out
}

// targets returns the enabled members.
func (p pool) targets() []Target {
	var out []Target
	for _, m := range p.Members {
		a, err := netip.ParseAddr(m.Address)
		if at, ok := endpoint(a, cmp.Or(m.Port, p.Port)); ok && err == nil && isEnabled(m.Enabled) {
			out = append(out, Target{at, max(m.Ratio, 1)})
		}
	}
	return out
}

// rule returns the routes of a DNAT rule with a port. A rule without a port would forward all ports of an address, so
// it has no routes.
func (docs documents) rule(body json.RawMessage) []Route {
	n, ok := parse[rule](body)
	if !ok || !isEnabled(n.Enabled) || n.Type != "DNAT" {
		return nil
	}
	network, inner := docs.profile(n.Profile.ID)
	outer, _ := strconv.Atoi(n.Port) // 0 if there is none
	from := addresses(n.External)
	to := addresses(n.Internal)
	if len(from) != len(to) || network != "tcp" && network != "udp" {
		return nil
	}
	var out []Route
	for i := range from {
		at, ok := endpoint(from[i], cmp.Or(outer, inner))
		target, ok2 := endpoint(to[i], cmp.Or(inner, outer))
		if ok && ok2 {
			out = append(out, Route{
				Listener: Listener{network, at},
				Name:     n.Name,
				Targets:  []Target{{target, 1}},
			})
		}
	}
	return out
}

// profile returns the protocol of an application port profile, and its port if it has only one.
func (docs documents) profile(id string) (network string, port int) {
	p, ok := read[profile](docs, profilePath, id)
	if !ok || len(p.Ports) == 0 {
		return "tcp", 0
	}
	if len(p.Ports[0].Destinations) > 0 {
		port, _ = strconv.Atoi(p.Ports[0].Destinations[0]) // 0 if it is a range
	}
	return strings.ToLower(p.Ports[0].Protocol), port
}

// endpoint joins an address and a port. It returns false if either is invalid.
func endpoint(a netip.Addr, port int) (netip.AddrPort, bool) {
	if !a.IsValid() || port < 1 || port > 65535 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(a, uint16(port)), true
}

const maxAddresses = 256 // per range

// addresses parses an address, a range of addresses, or a prefix, for which it returns the first address.
func addresses(text string) []netip.Addr {
	if p, err := netip.ParsePrefix(text); err == nil {
		return []netip.Addr{p.Addr()}
	}
	first, last, isRange := strings.Cut(text, "-")
	a, err := netip.ParseAddr(strings.TrimSpace(first))
	if err != nil {
		return nil
	}
	if !isRange {
		return []netip.Addr{a}
	}
	b, err := netip.ParseAddr(strings.TrimSpace(last))
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for ; a.IsValid() && a.Compare(b) <= 0 && len(out) < maxAddresses; a = a.Next() {
		out = append(out, a)
	}
	return out
}
