// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// An opening is a firewall rule, or a rule in an ACL list, that admits clients to a port.
type opening struct {
	id, kind string
	cidrs    []string
	ours     bool
	// marked means that the rule carries an ownership marker. Otherwise ours is inferred.
	marked bool
}

// admit plans the rules that admit clients to a port.
func (p *planner) admit(target string, port service.Port, rule cloudstack.Rule) {
	switch p.state.filter() {
	case firewalled:
		p.adjust(port, p.firewallOpenings(target, port, rule), func(list string) {
			f := cloudstack.Firewall{
				Protocol:  protocolOf(port),
				StartPort: cloudstack.Number(port.Number),
				EndPort:   cloudstack.Number(port.Number),
				CIDRs:     list,
			}
			p.opened = append(p.opened, f)
			p.do(step{verb: openFirewall, address: target, firewalls: []cloudstack.Firewall{f}},
				"open the firewall of %s for %s", endpointText(target, port.Number, protocolOf(port)), list)
		}, p.closeFirewall)
	case listed:
		// The list applies before the nodes. It sees the port of the load balancer, because the router has its
		// addresses.
		p.adjust(port, p.view.aclOpenings(port), func(list string) {
			p.do(step{
				verb: openACL,
				acl: cloudstack.ACL{
					ListID:      p.state.network.ACLID,
					Protocol:    protocolOf(port),
					StartPort:   cloudstack.Number(port.Number),
					EndPort:     cloudstack.Number(port.Number),
					CIDRs:       list,
					TrafficType: "ingress",
					Action:      "allow",
					Reason:      marker{owner: p.want.Owner}.String(),
				},
			}, "allow %s in the ACL list of network %s for %s", endpointText("", port.Number, protocolOf(port)),
				p.state.network.Name,
				list)
		}, p.closeACL)
	default:
	}
}

// adjust plans rules that admit exactly the desired clients. It first closes openings that admit too many clients, then
// opens the missing ones. Adding ranges causes no interruption. In an ACL list, rules of others are ignored, so that
// all desired clients are still admitted if those rules disappear.
func (p *planner) adjust(port service.Port, have []opening, open func(list string), shut func(id string)) {
	desired := p.view.clients()
	covered := []string(nil)
	for _, o := range have {
		excess := without(o.cidrs, func(c string) bool { return slices.Contains(desired, c) })
		switch {
		case !o.ours && p.state.filter() == listed:
			continue
		case len(excess) > 0 && o.ours:
			shut(o.id)
			continue
		case o.ours && !o.marked:
			p.tagFirewalls("tag firewall rule "+o.id, "", cloudstack.Firewall{ID: o.id})
		}
		covered = append(covered, o.cidrs...)
	}
	missing := without(desired, func(c string) bool { return slices.Contains(covered, c) })
	if len(missing) > 0 {
		open(strings.Join(missing, ","))
	}
	p.noticeOthers(port, have)
}

// clients returns the CIDRs of the clients that a port should admit.
func (v *view) clients() []string {
	if desired := cidrs(joined(ipv4(v.want.SourceRanges))); len(desired) > 0 {
		return desired
	}
	return []string{"0.0.0.0/0"}
}

// noticeOthers adds a notice for each rule of others that admits undesired clients.
func (p *planner) noticeOthers(port service.Port, have []opening) {
	desired := p.view.clients()
	for _, o := range have {
		lets := o.cidrs
		if len(lets) == 0 {
			lets = []string{"0.0.0.0/0"}
		}
		excess := without(lets, func(c string) bool { return within(c, desired) })
		if !o.ours && len(excess) > 0 {
			p.notice(reasonConflictingFirewallRule, "the %s %s does not belong to the Service but also allows %s to connect to port %d: remove it if only the Service should control access", o.kind, o.id,
				strings.Join(excess, ", "), port.Number)
		}
	}
}

// within reports whether a CIDR is IPv6, or contained in one of the listed CIDRs.
func within(cidr string, list []string) bool {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || p.Addr().Is6() {
		return err == nil
	}
	return slices.ContainsFunc(list, func(text string) bool {
		all, err := netip.ParsePrefix(text)
		return err == nil && all.Bits() <= p.Bits() && all.Contains(p.Addr())
	})
}

// tagFirewalls plans one write that tags firewall rules: by ID, or new ones that earlier steps create at an address. If
// a failure leaves rules without a marker, the next plan tags them, because their load balancer rules exist.
func (p *planner) tagFirewalls(text, target string, firewalls ...cloudstack.Firewall) {
	if len(firewalls) > 0 {
		p.do(step{verb: tagFirewalls, address: target, firewalls: firewalls, tag: marker{owner: p.want.Owner}.tag()},
			"%s", text)
	}
}

func (p *planner) closeFirewall(id string) {
	if p.closed == nil {
		p.closed = map[string]bool{}
	}
	p.closed[id] = true
	p.do(step{verb: closeFirewall, firewalls: []cloudstack.Firewall{{ID: id}}}, "delete firewall rule %s", id)
}

func (p *planner) closeACL(id string) {
	p.do(step{verb: closeACL, acl: cloudstack.ACL{ID: id}}, "delete ACL rule %s", id)
}

// firewallsAt returns the firewall rules for exactly this port.
func (p *planner) firewallsAt(target string, port service.Port) []cloudstack.Firewall {
	a, found := p.state.address(target)
	return without(p.state.firewalls, func(f cloudstack.Firewall) bool {
		return !found || f.AddressID != a.ID || p.closed[f.ID] || !isFor(f, port)
	})
}

// firewallsOfOthers returns the IDs of unmarked firewall rules that exist before the load balancer rule of a port. Only
// an address that does not belong to the owner alone can have such rules of others.
func (p *planner) firewallsOfOthers(target string, port service.Port) []string {
	if a, found := p.state.address(target); !found || p.view.holds(a) || p.view.intended(a) {
		return nil
	}
	var ids []string
	for _, f := range p.firewallsAt(target, port) {
		if _, marked := markerIn(f.Tags); !marked {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// firewallOpenings returns the firewall rules that admit clients to a port. Unmarked rules, such as those of the
// original controller, belong to the owner if they are for this port only and did not exist before the load balancer
// rule.
func (p *planner) firewallOpenings(target string, port service.Port, rule cloudstack.Rule) []opening {
	m, _ := parseMarker(rule.Description)
	a, found := p.state.address(target)
	var out []opening
	for _, f := range p.state.firewalls {
		if !found || f.AddressID != a.ID || p.closed[f.ID] || !spans(f.Protocol, f.StartPort, f.EndPort, port) {
			continue
		}
		is, marked := markerIn(f.Tags)
		alone := isFor(f, port) && !slices.Contains(m.keep, f.ID)
		ours := marked && same(is.owner, p.want.Owner) || !marked && alone
		out = append(out, opening{f.ID, "firewall rule", cidrs(f.CIDRs), ours, marked})
	}
	return out
}

// aclOpenings returns the rules in the ACL list that admit clients to a port.
func (v *view) aclOpenings(port service.Port) []opening {
	var out []opening
	for _, a := range v.state.acls {
		m, marked := parseMarker(a.Reason)
		mine := marked && same(m.owner, v.want.Owner)
		switch {
		case !strings.EqualFold(a.TrafficType, "ingress"), !strings.EqualFold(a.Action, "allow"):
		case mine && int(a.StartPort) == port.Number && strings.EqualFold(a.Protocol, protocolOf(port)):
			out = append(out, opening{a.ID, "ACL rule", cidrs(a.CIDRs), true, true})
		case !mine && spans(a.Protocol, a.StartPort, a.EndPort, port):
			out = append(out, opening{a.ID, "ACL rule", cidrs(a.CIDRs), false, marked})
		}
	}
	return out
}

// isFor reports whether a firewall rule is for exactly this port.
func isFor(f cloudstack.Firewall, port service.Port) bool {
	return int(f.StartPort) == port.Number && int(f.EndPort) == port.Number &&
		strings.EqualFold(f.Protocol, protocolOf(port))
}

// spans reports whether a rule covers a port. A rule without ports covers all ports.
func spans(protocol string, first, last cloudstack.Number, port service.Port) bool {
	number := map[loadbalancer.Protocol]string{loadbalancer.TCP: "6", loadbalancer.UDP: "17"}[port.Protocol]
	if !strings.EqualFold(protocol, protocolOf(port)) && !strings.EqualFold(protocol, "all") && protocol != number {
		return false
	}
	return first == 0 && last == 0 || int(first) <= port.Number && port.Number <= max(int(first), int(last))
}

// removeFirewalls plans the removal of firewall rules with the owner's marker, except for those that are kept. Their
// load balancer rules may no longer exist.
func (p *planner) removeFirewalls(kept func(cloudstack.Firewall) bool) {
	for _, f := range p.state.firewalls {
		m, marked := markerIn(f.Tags)
		if marked && same(m.owner, p.want.Owner) && !p.closed[f.ID] && !kept(f) {
			p.closeFirewall(f.ID)
		}
	}
}

// removeACLs plans the removal of the owner's rules in the ACL list, except for those of the given ports.
func (p *planner) removeACLs(kept []service.Port) {
	for _, a := range p.state.acls {
		isKept := slices.ContainsFunc(kept, func(port service.Port) bool {
			return int(a.StartPort) == port.Number && strings.EqualFold(a.Protocol, protocolOf(port))
		})
		if m, marked := parseMarker(a.Reason); marked && same(m.owner, p.want.Owner) && !isKept {
			p.closeACL(a.ID)
		}
	}
}
