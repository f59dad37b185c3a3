// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"net/netip"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// converted returns a function that converts a list, and passes on a read error.
func converted[S, T any](f func(S) T) func([]S, error) ([]T, error) {
	return func(items []S, err error) ([]T, error) {
		if err != nil {
			return nil, err
		}
		out := make([]T, len(items))
		for i, item := range items {
			out[i] = f(item)
		}
		return out, nil
	}
}

// object converts the common properties of objects. An object without a status is realized.
func object(ref vcd.Ref, description string, status vcd.Realization) lb.Object {
	state := lb.Pending
	switch status {
	case vcd.Realized, "":
		state = lb.Realized
	case vcd.RealizationFailed:
		state = lb.Failed
	case vcd.Pending, vcd.Configuring:
	}
	return lb.Object{ID: ref.ID, Name: ref.Name, Description: description, State: state}
}

func ref(r vcd.Ref) lb.Ref { return lb.Ref{ID: r.ID, Name: r.Name} }

func serviceOf(vs vcd.VirtualService) lb.VirtualService {
	out := lb.VirtualService{
		Object:      object(vs.Ref, vs.Description, vs.Status),
		Protocol:    loadbalancer.TCP,
		Application: lb.Application(vs.Application),
		Certificate: ref(vs.Certificate),
		Pool:        ref(vs.Pool),
		EngineGroup: ref(vs.EngineGroup),
		Transparent: vs.Transparent,
		Health:      string(vs.Health),
	}
	for _, a := range []netip.Addr{vs.Address, vs.IPv6Address} {
		if a.IsValid() {
			out.VIPs = append(out.VIPs, a)
		}
	}
	for i, p := range vs.Ports {
		r := lb.PortRange{Protocol: protocolOf(p.Profile), From: p.From, To: p.To}
		if i == 0 {
			out.Port = p.From
			out.SSL = p.SSL
			out.Protocol = r.Protocol
			r.From++
		}
		if r.From <= r.To {
			out.More = append(out.More, r)
		}
	}
	return out
}

func protocolOf(profile string) loadbalancer.Protocol {
	if strings.HasPrefix(profile, "UDP") {
		return loadbalancer.UDP
	}
	return loadbalancer.TCP
}

func poolOf(p vcd.ServerPool) lb.Pool {
	return lb.Pool{
		Object: object(p.Ref, p.Description, p.Status),
		Hints:  &lb.Hints{ByGroup: p.ByGroup, Members: p.MemberCount, Monitored: p.Monitored},
	}
}

func fullPool(p vcd.ServerPool) lb.Pool {
	out := poolOf(p)
	out.Full = true
	out.NodePort = p.DefaultPort
	out.Group = ref(p.MemberGroup)
	out.Sticky = p.Sticky
	out.Algorithm = p.Algorithm
	for _, m := range p.Members {
		out.Members = append(out.Members, m.Address)
		if m.Port != 0 && m.Port != p.DefaultPort {
			out.NodePort = m.Port // the pool sends to this port
		}
	}
	for _, m := range p.Monitors {
		out.Monitors = append(out.Monitors, lb.Monitor(m))
	}
	return out
}

func setOf(s vcd.IPSet) lb.Set { return lb.Set{Object: object(s.Ref, s.Description, s.Status)} }

func fullSet(s vcd.IPSet) lb.Set {
	out := setOf(s)
	out.Full = true
	out.Members = s.Addresses
	return out
}

func claimOf(a vcd.FloatingIP, space lb.Ref) lb.Claim {
	return lb.Claim{ID: a.ID, Description: a.Description, Space: space, Value: a.Address, Used: a.Usage != vcd.Unused}
}

func ruleOf(r vcd.NATRule) lb.Rule {
	return lb.Rule{
		Object:       object(r.Ref, r.Description, ""),
		External:     address(r.External),
		Internal:     address(r.Internal),
		ExternalPort: r.Port,
		Profile:      ref(r.Profile),
		Other:        r.Type != "DNAT",
	}
}

// address parses an address. For a range or prefix, it returns the first address.
func address(text string) netip.Addr {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Addr()
	}
	first, _, _ := strings.Cut(text, "-")
	a, err := netip.ParseAddr(strings.TrimSpace(first))
	if err != nil {
		return netip.Addr{}
	}
	return a
}

func profileOf(p vcd.PortProfile) lb.Profile {
	return lb.Profile{Object: object(p.Ref, p.Description, p.Status), Protocol: loadbalancer.Protocol(p.Protocol), Port: p.Port}
}

func certificateOf(c vcd.Certificate) lb.CertificateItem {
	return lb.CertificateItem{Object: object(c.Ref, c.Description, "")}
}

func firewallOf(r vcd.FirewallRule) lb.FirewallRule {
	return lb.FirewallRule{
		Object:   object(vcd.Ref{ID: r.ID, Name: r.Name}, r.Description, ""),
		Disabled: !r.Enabled,
		Drops:    r.Action != "ALLOW",
	}
}

func groupOf(g vcd.EngineGroup) lb.EngineGroup {
	return lb.EngineGroup{Object: object(vcd.Ref{ID: g.ID, Name: g.Name}, "", ""), Deployed: g.Deployed, Max: g.Max}
}

func ranges(list []vcd.AddressRange) []lb.Range {
	out := make([]lb.Range, len(list))
	for i, r := range list {
		out[i] = lb.Range{First: r.From, Last: r.To}
	}
	return out
}

// rulesFor returns the rules in the HTTP policy of a virtual service.
func rulesFor(vs lb.VirtualService) vcd.HTTPRules {
	return vcd.HTTPRules{
		Protocol:        vcd.Application(vs.Application),
		Redirect:        vs.Rules.Redirect,
		RequestHeaders:  headersFor(vs.Rules.RequestHeaders),
		ResponseHeaders: headersFor(vs.Rules.ResponseHeaders),
	}
}

func headersFor(headers lb.Headers) []vcd.Header {
	var out []vcd.Header
	headers.Each(func(name, value string) { out = append(out, vcd.Header{Name: name, Value: value}) })
	return out
}

// changedRules differ from all rules that this program writes.
var changedRules = lb.HTTPRules{Redirect: -1}

// rulesOf converts the rules in the HTTP policy of a virtual service.
func rulesOf(rules vcd.HTTPRules, application lb.Application) lb.HTTPRules {
	if rules.Changed || rules.Protocol != "" && lb.Application(rules.Protocol) != application {
		return changedRules
	}
	return lb.HTTPRules{
		Redirect:        rules.Redirect,
		RequestHeaders:  headersOf(rules.RequestHeaders),
		ResponseHeaders: headersOf(rules.ResponseHeaders),
	}
}

func headersOf(headers []vcd.Header) lb.Headers {
	lines := make([]string, 0, len(headers))
	for _, h := range headers {
		lines = append(lines, lb.HeaderLine(h.Name, h.Value))
	}
	return lb.Headers(strings.Join(lines, "\n"))
}
