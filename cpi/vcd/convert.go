// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// desired adds VCD's part of a wish to that of the core.
func desired(d plan.Desired) lb.Desired {
	out, _ := d.Extra.(lb.Desired)
	out.Owner = lb.Owner(d.Owner)
	out.Absent = d.Absent
	out.Duplicate = d.Duplicate
	out.Accompanied = d.Accompanied
	out.Elsewhere = d.Elsewhere
	out.Unseen = d.Unseen
	out.Requested = d.Requested
	out.Intent = d.Intent
	out.Published = d.Published
	out.Share = d.Share
	out.AllFamilies = d.AllFamilies
	out.Generation = d.Generation
	out.Sticky = d.Sticky
	out.SourceRanges = d.SourceRanges
	for _, f := range d.Families {
		out.Families = append(out.Families, lb.Family(f))
	}
	for _, u := range d.Reserved {
		out.Reserved = append(out.Reserved, lb.Use{
			Address:  u.Address,
			Protocol: lb.Protocol(u.Protocol),
			Port:     u.Port,
			Kind:     lb.Kind(u.Kind),
			Name:     u.Name,
			Marker:   lb.Marker{Owner: lb.Owner(u.Owner), Share: u.Share},
			Reserved: u.Owner == plan.Owner{},
		})
	}
	for _, m := range d.Members {
		out.Members = append(out.Members, m.Addresses...)
	}
	extra := out.Listeners
	out.Listeners = nil
	for i, p := range d.Ports {
		var l lb.Listener
		if i < len(extra) {
			l = extra[i]
		}
		l.Name = p.Name
		l.Protocol = lb.Protocol(p.Protocol)
		l.Port = p.Number
		l.NodePort = p.NodePort
		out.Listeners = append(out.Listeners, l)
	}
	return out
}

// planOf returns a plan as the core knows it.
func planOf(want lb.Desired, p lb.Plan) plan.Plan {
	out := plan.Plan{
		Refusals: findings(p.Refusals),
		Notices:  findings(p.Notices),
		Stuck:    findings(p.Stuck),
		Intent:   p.Intent,
		Unused:   p.Unused,
		Wait:     p.Wait,
		Status:   plan.Status{Addresses: p.Status.Addresses},
	}
	for _, s := range p.Steps {
		out.Steps = append(out.Steps, step{s, want.Owner, want.Share})
	}
	for _, s := range p.Status.Ports {
		out.Status.Ports = append(out.Status.Ports,
			plan.PortStatus{Protocol: plan.Protocol(s.Protocol), Port: s.Port, Problem: s.Problem})
	}
	for _, o := range p.Status.Objects {
		out.Status.Objects = append(out.Status.Objects,
			plan.Object{Kind: string(o.Kind), ID: o.ID, Name: o.Name, Addresses: o.Addresses, Inherited: o.Old})
	}
	return out
}

func findings(all []lb.Finding) []plan.Finding {
	var out []plan.Finding
	for _, f := range all {
		out = append(out, plan.Finding(f))
	}
	return out
}

// A step is one of package lb, with the owner that it is for.
type step struct {
	lb.Step

	owner lb.Owner
	share string
}

// Uses implements [plan.Step].
func (s step) Uses() []plan.Use {
	use := func(a netip.Addr, protocol lb.Protocol, port int) plan.Use {
		return plan.Use{
			Address:  a,
			Protocol: plan.Protocol(protocol),
			Port:     port,
			Kind:     string(s.Kind),
			Name:     s.Name,
			Owner:    plan.Owner(s.owner),
			Share:    s.share,
		}
	}
	var out []plan.Use
	switch {
	case s.Service != nil:
		for _, a := range s.Service.VIPs {
			out = append(out, use(a, s.Service.Protocol, s.Service.Port))
		}
	case s.Rule != nil:
		out = append(out, use(s.Rule.External, "", s.Rule.ExternalPort))
	}
	return out
}
