package edge

import (
	"net/netip"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func object(ref vcd.Ref, description string, status vcd.Realization) lb.Object {
	return lb.Object{ID: ref.ID, Name: ref.Name, Description: description, State: state(status)}
}

// state says where VCD is. What has no status is there.
func state(status vcd.Realization) lb.State {
	switch status {
	case vcd.Realized, "":
		return lb.Realized
	case vcd.RealizationFailed:
		return lb.Failed
	default:
		return lb.Pending
	}
}

func ref(r vcd.Ref) lb.Ref { return lb.Ref{ID: r.ID, Name: r.Name} }

func refs(list []vcd.Ref) []lb.Ref {
	var out []lb.Ref
	for _, r := range list {
		out = append(out, ref(r))
	}
	return out
}

func serviceOf(vs vcd.VirtualService) lb.VirtualService {
	out := lb.VirtualService{
		Object: object(vs.Ref, vs.Description, vs.Status), Enabled: vs.Enabled, VIPs: vips(vs), Protocol: lb.TCP,
		Application: lb.Application(vs.Application), Certificate: ref(vs.Certificate), Pool: ref(vs.Pool), EngineGroup: ref(vs.EngineGroup),
		Transparent: vs.Transparent, Health: string(vs.Health), HealthMessage: vs.Message,
	}
	if len(vs.Ports) > 0 {
		out.Port, out.SSL, out.Protocol = vs.Ports[0].From, vs.Ports[0].SSL, protocolOf(vs.Ports[0].Profile)
	}
	return out
}

func vips(vs vcd.VirtualService) []netip.Addr {
	var out []netip.Addr
	for _, a := range []netip.Addr{vs.Address, vs.IPv6Address} {
		if a.IsValid() {
			out = append(out, a)
		}
	}
	return out
}

func protocolOf(profile string) lb.Protocol {
	if strings.HasPrefix(profile, "UDP") {
		return lb.UDP
	}
	return lb.TCP
}

func poolOf(p vcd.PoolSummary) lb.Pool {
	return lb.Pool{
		Object: object(p.Ref, p.Description, p.Status), Enabled: p.Enabled, Services: refs(p.VirtualServices), Health: string(p.Health),
		Hints: &lb.Hints{ByGroup: p.ByGroup, Members: p.Members, Monitored: p.ActiveMonitors},
	}
}

func fullPool(p vcd.ServerPool) lb.Pool {
	out := poolOf(p.PoolSummary)
	out.Full, out.NodePort, out.Group, out.Sticky, out.Algorithm = true, p.DefaultPort, ref(p.MemberGroup), p.Persistence == vcd.ClientIP, p.Algorithm
	for _, m := range p.MemberList {
		out.Members = append(out.Members, m.Address)
		if m.Port != 0 && m.Port != p.DefaultPort {
			out.NodePort = m.Port // that is where the pool sends to
		}
	}
	for _, m := range p.Monitors {
		out.Probes = append(out.Probes, lb.Health{Monitor: lb.Monitor(m)})
	}
	return out
}

func setOf(s vcd.IPSet) lb.Set { return lb.Set{Object: object(s.Ref, s.Description, s.Status)} }

func fullSet(s vcd.IPSet) lb.Set {
	out := setOf(s)
	out.Full = true
	for _, text := range s.Addresses {
		if a, err := netip.ParseAddr(text); err == nil {
			out.Members = append(out.Members, a)
		}
	}
	return out
}

func claimOf(c claim) lb.Claim {
	return lb.Claim{ID: c.ID, Description: c.Description, Space: ref(c.space), Value: c.Address, Used: c.Usage != vcd.Unused}
}

func ruleOf(r vcd.NATRule) lb.Rule {
	return lb.Rule{
		Object: object(vcd.Ref{ID: r.ID, Name: r.Name}, r.Description, ""), Enabled: r.Enabled, External: address(r.External),
		Internal: address(r.Internal), ExternalPort: r.Port, Profile: ref(r.Profile),
	}
}

// address reads an address; of a range or prefix, the first.
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
	return lb.Profile{Object: object(p.Ref, p.Description, p.Status), Protocol: lb.Protocol(p.Protocol), Port: p.Port}
}

func certificateOf(c vcd.Certificate) lb.CertificateItem {
	return lb.CertificateItem{Object: object(c.Ref, c.Description, "")}
}

func firewallOf(r vcd.FirewallRule) lb.FirewallRule {
	return lb.FirewallRule{Object: object(vcd.Ref{ID: r.ID, Name: r.Name}, r.Description, ""), Enabled: r.Enabled}
}

// maxUses bounds how many uses one virtual service counts for: beyond, it uses all ports.
const maxUses = 32

// usesOfService are the addresses and ports that a virtual service of another owner has.
func usesOfService(vs vcd.VirtualService, m lb.Marker) []lb.Use {
	var uses []lb.Use
	for _, vip := range vips(vs) {
		for _, p := range vs.Ports {
			use := lb.Use{Address: vip, Protocol: protocolOf(p.Profile), Kind: lb.KindService, Name: vs.Name, Marker: m}
			if p.To-p.From >= maxUses {
				uses = append(uses, use)
				continue
			}
			for port := p.From; port <= p.To; port++ {
				use.Port = port
				uses = append(uses, use)
			}
		}
	}
	return uses
}

// usesOfRule are the addresses that a NAT rule of another owner has: outside, and inside where it leads.
func usesOfRule(r vcd.NATRule, profiles map[string]vcd.PortProfile, m lb.Marker) []lb.Use {
	var uses []lb.Use
	use := lb.Use{Kind: lb.KindRule, Name: r.Name, Marker: m}
	if r.Type != "DNAT" {
		if use.Address = address(r.External); use.Address.IsValid() {
			uses = append(uses, use)
		}
		return uses
	}
	if use.Address = address(r.External); use.Address.IsValid() {
		outside := use
		outside.Port = r.Port
		if p, ok := profiles[r.Profile.ID]; ok && r.Port != 0 {
			outside.Protocol = lb.Protocol(p.Protocol)
		}
		uses = append(uses, outside)
	}
	if use.Address = address(r.Internal); use.Address.IsValid() {
		uses = append(uses, use)
	}
	return uses
}
