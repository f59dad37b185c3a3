// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"
	"slices"
)

// Gateway finds an edge gateway with where it is; all are nil if there is none.
func (s *Store) Gateway(id string) (*Org, *VDC, *EdgeGateway) {
	for o := range s.Model.Orgs {
		org := &s.Model.Orgs[o]
		for v := range org.VDCs {
			for g := range org.VDCs[v].EdgeGateways {
				if org.VDCs[v].EdgeGateways[g].ID == id {
					return org, &org.VDCs[v], &org.VDCs[v].EdgeGateways[g]
				}
			}
		}
	}
	return nil, nil, nil
}

// Entity returns the reference that tasks and answers use.
func (g *EdgeGateway) Entity() Entity { return Entity{Kind: "gateway", ID: g.ID, Name: g.Name} }

// External finds an external network, nil if there is none.
func (s *Store) External(id string) *ExternalNetwork {
	for i := range s.Model.ExternalNetworks {
		if s.Model.ExternalNetworks[i].ID == id {
			return &s.Model.ExternalNetworks[i]
		}
	}
	return nil
}

// Entity returns the reference that tasks and answers use.
func (e *ExternalNetwork) Entity() Entity {
	urn := URN("network", e.ID)
	return Entity{Kind: "network", ID: e.ID, Name: e.Name, Path: "/cloudapi/1.0.0/externalNetworks/" + urn}
}

// Entity returns the reference that tasks and answers use.
func (a *IPAllocation) Entity() Entity {
	return Entity{Kind: "ipSpaceIpAllocation", ID: a.ID, Name: a.Value}
}

// Space finds an IP Space, nil if there is none.
func (s *Store) Space(id string) *IPSpace {
	for i := range s.Model.IPSpaces {
		if s.Model.IPSpaces[i].ID == id {
			return &s.Model.IPSpaces[i]
		}
	}
	return nil
}

// Entity returns the reference that tasks and answers use.
func (p *IPSpace) Entity() Entity { return Entity{Kind: "ipSpace", ID: p.ID, Name: p.Name} }

// Entity returns the reference that tasks and answers use.
func (u *SpaceUplink) Entity() Entity { return Entity{Kind: "ipSpaceUplink", ID: u.ID, Name: u.Name} }

// Entity returns the reference that tasks and answers use.
func (n *Network) Entity() Entity { return Entity{Kind: "network", ID: n.ID, Name: n.Name} }

// Locks are what is busy while a network changes: it, and the gateway it is connected to.
func (n *Network) Locks() []string {
	if n.Edge != "" {
		return []string{n.ID, n.Edge}
	}
	return []string{n.ID}
}

// Size is the number of addresses in a range, at most 2^31-1 as VCD counts.
func (r Range) Size() int {
	n := 0
	from := r.From.As16()
	to := r.To.As16()
	for i := range from {
		n = n<<8 + int(to[i]) - int(from[i])
		if n > math.MaxInt32 {
			return math.MaxInt32
		}
	}
	return n + 1
}

// Group finds a VDC group with its organization.
func (s *Store) Group(id string) (*Org, *VDCGroup) {
	for o := range s.Model.Orgs {
		if g := s.Model.Orgs[o].Group(id); g != nil {
			return &s.Model.Orgs[o], g
		}
	}
	return nil, nil
}

// Group finds a VDC group of the organization, nil if there is none.
func (o *Org) Group(id string) *VDCGroup {
	for g := range o.VDCGroups {
		if o.VDCGroups[g].ID == id {
			return &o.VDCGroups[g]
		}
	}
	return nil
}

// Shares reports whether a network belongs to a group that a VDC is in.
func (o *Org) Shares(n *Network, v *VDC) bool {
	g := o.Group(n.Group)
	return g != nil && slices.Contains(g.VDCs, v.ID)
}

// FirstOf is the first VDC of a group, which keeps what belongs to the group.
func (s *Store) FirstOf(group string) (*Org, *VDC) {
	org, g := s.Group(group)
	if g == nil {
		return nil, nil
	}
	for _, id := range g.VDCs {
		if _, v := s.VDC(id); v != nil {
			return org, v
		}
	}
	return nil, nil
}

// GroupOf is the group a VDC is in, nil if in none.
func (o *Org) GroupOf(vdc string) *VDCGroup {
	for g := range o.VDCGroups {
		if slices.Contains(o.VDCGroups[g].VDCs, vdc) {
			return &o.VDCGroups[g]
		}
	}
	return nil
}

// Entity returns the reference that tasks and answers use.
func (g *VDCGroup) Entity() Entity { return Entity{Kind: "vdcGroup", ID: g.ID, Name: g.Name} }

// GatewayName returns the name of an edge gateway, "" if there is none with the id.
func (s *Store) GatewayName(id string) string {
	if _, _, g := s.Gateway(id); g != nil {
		return g.Name
	}
	return ""
}
