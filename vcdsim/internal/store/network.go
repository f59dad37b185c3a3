// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"
	"slices"
)

// Gateway returns an edge gateway with its organization and VDC, or nils if it does not exist.
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

// Entity returns the reference for tasks and responses.
func (g *EdgeGateway) Entity() Entity { return Entity{Kind: "gateway", ID: g.ID, Name: g.Name} }

// External returns an external network, or nil if it does not exist.
func (s *Store) External(id string) *ExternalNetwork {
	for i := range s.Model.ExternalNetworks {
		if s.Model.ExternalNetworks[i].ID == id {
			return &s.Model.ExternalNetworks[i]
		}
	}
	return nil
}

// Entity returns the reference for tasks and responses.
func (e *ExternalNetwork) Entity() Entity {
	urn := URN("network", e.ID)
	return Entity{Kind: "network", ID: e.ID, Name: e.Name, Path: "/cloudapi/1.0.0/externalNetworks/" + urn}
}

// Entity returns the reference for tasks and responses.
func (a *IPAllocation) Entity() Entity {
	return Entity{Kind: "ipSpaceIpAllocation", ID: a.ID, Name: a.Value}
}

// Space returns an IP Space, or nil if it does not exist.
func (s *Store) Space(id string) *IPSpace {
	for i := range s.Model.IPSpaces {
		if s.Model.IPSpaces[i].ID == id {
			return &s.Model.IPSpaces[i]
		}
	}
	return nil
}

// Entity returns the reference for tasks and responses.
func (p *IPSpace) Entity() Entity { return Entity{Kind: "ipSpace", ID: p.ID, Name: p.Name} }

// Entity returns the reference for tasks and responses.
func (u *SpaceUplink) Entity() Entity { return Entity{Kind: "ipSpaceUplink", ID: u.ID, Name: u.Name} }

// Entity returns the reference for tasks and responses.
func (n *Network) Entity() Entity { return Entity{Kind: "network", ID: n.ID, Name: n.Name} }

// Locks returns the IDs of the entities that are busy while a network changes: the network and its gateway.
func (n *Network) Locks() []string {
	if n.Edge != "" {
		return []string{n.ID, n.Edge}
	}
	return []string{n.ID}
}

// Size returns the number of addresses in a range, at most 2^31-1, as VCD counts them.
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

// Group returns a VDC group with its organization, or nils if it does not exist.
func (s *Store) Group(id string) (*Org, *VDCGroup) {
	for o := range s.Model.Orgs {
		if g := s.Model.Orgs[o].Group(id); g != nil {
			return &s.Model.Orgs[o], g
		}
	}
	return nil, nil
}

// Group returns a VDC group of the organization, or nil if it does not exist.
func (o *Org) Group(id string) *VDCGroup {
	for g := range o.VDCGroups {
		if o.VDCGroups[g].ID == id {
			return &o.VDCGroups[g]
		}
	}
	return nil
}

// Shares reports whether a network belongs to a group that contains a VDC.
func (o *Org) Shares(n *Network, v *VDC) bool {
	g := o.Group(n.Group)
	return g != nil && slices.Contains(g.VDCs, v.ID)
}

// FirstOf returns the first VDC of a group, which stores the objects of the group.
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

// GroupOf returns the group of a VDC, or nil if it is in none.
func (o *Org) GroupOf(vdc string) *VDCGroup {
	for g := range o.VDCGroups {
		if slices.Contains(o.VDCGroups[g].VDCs, vdc) {
			return &o.VDCGroups[g]
		}
	}
	return nil
}

// Entity returns the reference for tasks and responses.
func (g *VDCGroup) Entity() Entity { return Entity{Kind: "vdcGroup", ID: g.ID, Name: g.Name} }

// GatewayName returns the name of an edge gateway, or "" if it does not exist.
func (s *Store) GatewayName(id string) string {
	if _, _, g := s.Gateway(id); g != nil {
		return g.Name
	}
	return ""
}
