// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// serve plans the rule of a port at an address, with its members and the rules that admit clients.
func (p *planner) serve(target string, port service.Port) {
	if p.taken(target, port) {
		return
	}
	want := p.ruleOf(port)
	have := p.view.ruleIndex(target, port)
	switch {
	case have < 0:
		want.Description = marker{
			p.want.Owner,
			p.firewallsOfOthers(target, port),
			stickinessOf(p.want, port) != nil,
		}.String()
		p.create(target, port, want)
	case p.replaces(p.view.mine[have], want):
		want.Description = p.view.description(p.view.mine[have], port)
		p.removeRules(p.view.mine[have : have+1])
		p.create(target, port, want)
	default:
		want.Description = p.view.description(p.view.mine[have], port)
		p.endStickiness(p.view.mine[have], port)
		p.update(p.view.mine[have], want)
		p.follow(p.view.mine[have])
		p.beginStickiness(target, p.view.mine[have], port)
	}
	p.admit(target, port, want)
}

// taken refuses a port that another owner uses at the address, and reports whether it did.
func (p *planner) taken(target string, port service.Port) bool {
	kind, name := p.takenBy(target, port)
	if name == "" {
		return false
	}
	p.refuse(reasonPortInUse, "%s is used by %s %s: request another address, or another port",
		endpointText(target, port.Number, protocolOf(port)), kind, name)
	return true
}

// takenBy returns the object of another owner that uses a port of an address, or empty strings.
func (p *planner) takenBy(target string, port service.Port) (kind, name string) {
	for _, r := range p.state.rules {
		if isAt(r, target, port) && !p.view.owns(r) {
			return "load balancer rule", r.Name
		}
	}
	for _, u := range p.want.Reserved {
		if u.Address.String() == target && !same(u.Owner, p.want.Owner) && covers(u, port) {
			return string(u.Kind), u.Name
		}
	}
	return "", ""
}

// covers reports whether a use includes a port.
func covers(u loadbalancer.Use, port service.Port) bool {
	return (u.Port == 0 || u.Port == port.Number) && (u.Protocol == "" || u.Protocol == port.Protocol)
}

// ruleOf returns the desired rule of a port.
func (p *planner) ruleOf(port service.Port) cloudstack.Rule {
	protocol := protocolOf(port)
	if p.extra.Proxy && protocol == protoTCP {
		protocol = protoProxy
	}
	return cloudstack.Rule{
		Name:        nameOf(p.want.Owner) + "-" + protocol + "-" + strconv.Itoa(port.Number),
		Protocol:    protocol,
		Algorithm:   p.extra.Algorithm,
		NetworkID:   p.state.network.ID,
		PublicPort:  cloudstack.Number(port.Number),
		PrivatePort: cloudstack.Number(port.NodePort),
		CIDRs:       p.ruleCIDRs(),
	}
}

// ruleCIDRs returns the clients that the rules admit: those in an annotation, or else the source ranges if nothing else
// filters traffic.
func (p *planner) ruleCIDRs() string {
	all := p.extra.CIDRs
	if len(all) == 0 && p.state.filter() == unfiltered {
		all = ipv4(p.want.SourceRanges)
	}
	return joined(all)
}

// replaces reports whether a rule must be replaced because it cannot be changed to the desired one.
func (p *planner) replaces(have, want cloudstack.Rule) bool {
	return have.PrivatePort != want.PrivatePort || !p.state.updatesCIDRs && sameCIDRs(have, want) != nil ||
		want.CIDRs == "" && have.CIDRs != "" && sameCIDRs(have, want) != nil
}

// sameCIDRs returns the CIDRs that a rule must get, or nil if it has them. No CIDRs means all clients.
func sameCIDRs(have, want cloudstack.Rule) []string {
	now := cidrs(have.CIDRs)
	then := cidrs(want.CIDRs)
	world := []string{"0.0.0.0/0"}
	if len(now) == 0 {
		now = world
	}
	if len(then) == 0 {
		then = world
	}
	if slices.Equal(now, then) {
		return nil
	}
	return then
}

// description returns the desired description of an existing rule.
func (v *view) description(r cloudstack.Rule, port service.Port) string {
	m, _ := parseMarker(r.Description)
	return marker{v.want.Owner, m.keep, stickinessOf(v.want, port) != nil}.String()
}

func (p *planner) create(target string, port service.Port, want cloudstack.Rule) {
	p.do(step{verb: createRule, address: target, rule: want}, "create rule %s, %s to node port %d", want.Name,
		endpointText(target, port.Number, want.Protocol), port.NodePort)
	ids := p.view.ids
	names := p.view.names
	if len(ids) > 0 {
		p.do(step{verb: addMembers, address: target, rule: want, vms: ids}, "send %s to %s", want.Name,
			enumerated(names))
	}
	p.beginStickiness(target, want, port)
}

// update plans the changes of a rule that CloudStack supports.
func (p *planner) update(have, want cloudstack.Rule) {
	change := cloudstack.Rule{ID: have.ID}
	text := []string(nil)
	for _, x := range []struct {
		name             string
		have, want, into *string
	}{
		{"name", &have.Name, &want.Name, &change.Name},
		{"description", &have.Description, &want.Description, &change.Description},
		{"protocol", &have.Protocol, &want.Protocol, &change.Protocol},
		{"algorithm", &have.Algorithm, &want.Algorithm, &change.Algorithm},
	} {
		if !strings.EqualFold(*x.have, *x.want) {
			*x.into = *x.want
			text = append(text, x.name+" "+*x.want)
		}
	}
	if list := sameCIDRs(have, want); list != nil {
		change.CIDRs = strings.Join(list, ",")
		text = append(text, "CIDRs "+change.CIDRs)
	}
	if len(text) > 0 {
		p.do(step{verb: updateRule, rule: change}, "change rule %s: %s", have.Name, strings.Join(text, ", "))
	}
}

// follow plans the members of an existing rule.
func (p *planner) follow(have cloudstack.Rule) {
	ids := p.view.ids
	names := p.view.names
	now := p.state.members[have.ID]
	add := minus(ids, now)
	drop := minus(minus(now, ids), p.view.stay)
	rule := cloudstack.Rule{ID: have.ID, Name: have.Name}
	if len(add) > 0 {
		p.do(step{verb: addMembers, rule: rule, vms: add}, "also send %s to %s", rule.Name,
			enumerated(namesOf(add, ids, names)))
	}
	if len(drop) > 0 {
		p.do(step{verb: removeMembers, rule: rule, vms: drop}, "stop sending %s to %s", rule.Name,
			enumerated(p.view.vmNames(drop)))
	}
}

// maxNames is the maximum number of nodes that a step names.
const maxNames = 10

// enumerated returns a text with the first names and the number of the others.
func enumerated(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

func namesOf(some, ids, names []string) []string {
	var out []string
	for _, id := range some {
		out = append(out, names[slices.Index(ids, id)])
	}
	return out
}

// vmNames returns the names of virtual machines, or their IDs if they are not listed.
func (v *view) vmNames(ids []string) []string {
	var out []string
	for _, id := range ids {
		name := id
		for _, vm := range v.state.vms {
			if vm.ID == id {
				name = vm.Name
			}
		}
		out = append(out, name)
	}
	return out
}

// removeRules plans the removal of rules. The rules that admit clients are removed first: while a load balancer rule
// exists, it identifies the owner of unmarked firewall rules.
func (p *planner) removeRules(rules []cloudstack.Rule) {
	for _, r := range rules {
		port := service.Port{Number: int(r.PublicPort), Protocol: loadbalancer.Protocol(strings.ToUpper(transport(r.Protocol)))}
		for _, o := range p.firewallOpenings(r.Address, port, r) {
			if o.ours {
				p.closeFirewall(o.id)
			}
		}
		p.do(step{verb: deleteRule, rule: r}, "delete rule %s, %s", r.Name,
			endpointText(r.Address, int(r.PublicPort), r.Protocol))
	}
}
