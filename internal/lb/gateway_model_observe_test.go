// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"errors"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// observe does what a driver does.
func (m *model) observe(q Query) Observed {
	o := Observed{
		Known:   q.Facts,
		Gateway: Gateway{ID: m.gateway.ID, Name: m.gateway.Name, UsesSpaces: len(m.gateway.Spaces) > 0},
		Sets:    slices.Clone(m.sets),
		Claims:  slices.Clone(m.claims),
	}
	if q.Facts.Has(Addresses) {
		o.Gateway.Ranges = m.gateway.Ranges
		o.Gateway.Spaces = m.spaces()
		o.Gateway.Used = m.used()
	}
	if q.Facts.Has(Hosts) {
		o.Taken = append(o.Taken, m.hosts...)
	}
	if q.Facts.Has(EngineGroups) {
		o.Gateway.Groups = slices.Clone(m.gateway.Groups)
		for i := range o.Gateway.Groups {
			for _, vs := range m.services {
				if vs.EngineGroup.ID == o.Gateway.Groups[i].ID {
					o.Gateway.Groups[i].Deployed++
				}
			}
		}
	}
	for _, x := range m.services {
		pick(&o, &o.Services, q.Owner, KindService, x, x.Object)
	}
	for _, x := range m.pools {
		hints := m.hints(x)
		if !q.Facts.Has(FullPools) && !m.full {
			x = Pool{Object: x.Object}
		}
		x.Hints = hints
		x.Full = q.Facts.Has(FullPools) || m.full
		pick(&o, &o.Pools, q.Owner, KindPool, x, x.Object)
	}
	if q.Facts.Has(Forwardings) {
		for _, x := range m.rules {
			pick(&o, &o.Rules, q.Owner, KindRule, x, x.Object)
		}
		for _, x := range m.profiles {
			pick(&o, &o.Profiles, q.Owner, KindProfile, x, x.Object)
		}
	}
	if q.Facts.Has(Firewall) {
		for _, x := range m.firewall {
			pick(&o, &o.Firewall, q.Owner, KindFirewall, x, x.Object)
		}
	}
	if q.Facts.Has(Certificates) {
		o.Certificates = slices.Clone(m.certs)
	}
	for i := range o.Sets {
		o.Sets[i].Full = m.full || q.Facts.Has(FullSets)
	}
	return o
}

// hints returns the members and monitors of a pool as lists show them.
func (m *model) hints(x Pool) *Hints {
	h := &Hints{ByGroup: x.Group != Ref{}, Members: len(x.Members), Monitored: x.IsMonitored()}
	for _, s := range m.sets {
		if s.ID == x.Group.ID {
			h.Members = len(s.Members)
		}
	}
	return h
}

// pick puts an object with the owner's or with what others have.
func pick[T any](o *Observed, list *[]T, owner loadbalancer.Owner, kind loadbalancer.Kind, object T, base Object) {
	mark, origin := OwnerOf(owner.Cluster, kind, base.Name, base.Description)
	if origin == Marked && mark.Owner.Is(owner) || origin == OldName && mark.Owner.Name == owner.Name {
		*list = append(*list, object)
		return
	}
	if origin == Marked && kind != KindSet {
		o.Others = true
	}
	if stray, ok := StrayOf(owner, base.Name, base.Description); ok {
		o.Strays = append(o.Strays, stray)
	}
	o.Taken = append(o.Taken, usesOf(object, mark)...)
}

func (m *model) spaces() []Space {
	out := slices.Clone(m.gateway.Spaces)
	for i := range out {
		for _, r := range out[i].Ranges {
			for a := r.First; r.Contains(a); a = a.Next() {
				if !slices.ContainsFunc(m.claims, func(c Claim) bool { return c.Value == a }) {
					out[i].Free = append(out[i].Free, a)
				}
			}
		}
	}
	return out
}

func (m *model) used() []UsedAddress {
	out := slices.Clone(m.gateway.Used)
	for _, vs := range m.services {
		for _, a := range vs.VIPs {
			out = append(out, UsedAddress{a, "Load_Balancer"})
		}
	}
	for _, r := range m.rules {
		out = append(out, UsedAddress{r.External, "DNAT"})
	}
	return out
}

var errModel = errors.New("refused by the model")
