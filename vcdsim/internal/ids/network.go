// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// fillNetworks sets the IDs of network objects and replaces names in references by IDs.
func (i *Source) fillNetworks(m *store.Model) {
	byName := map[string]string{}
	for e := range m.ExternalNetworks {
		n := &m.ExternalNetworks[e]
		i.set(&n.ID, "network", "external/"+n.Name)
		byName[n.Name] = n.ID
	}
	for p := range m.IPSpaces {
		s := &m.IPSpaces[p]
		i.set(&s.ID, "ipSpace", s.Name)
		for u := range s.Uplinks {
			i.set(&s.Uplinks[u].ID, "ipSpaceUplink", s.ID+s.Uplinks[u].Name)
			resolve(&s.Uplinks[u].Network, byName)
		}
		for a := range s.Allocations {
			i.set(&s.Allocations[a].ID, "ipSpaceIpAllocation", s.ID+s.Allocations[a].Value)
		}
	}
	for o := range m.Orgs {
		org := &m.Orgs[o]
		members := map[string]string{}
		for v := range org.VDCs {
			i.fillGateways(&org.VDCs[v], byName)
			members[org.VDCs[v].Name] = org.VDCs[v].ID
		}
		groups := map[string]string{}
		for g := range org.VDCGroups {
			group := &org.VDCGroups[g]
			i.set(&group.ID, "vdcGroup", org.ID+group.Name)
			groups[group.Name] = group.ID
			for v := range group.VDCs {
				resolve(&group.VDCs[v], members)
			}
		}
		for v := range org.VDCs {
			resolveGroups(&org.VDCs[v], groups)
		}
	}
}

func resolveGroups(v *store.VDC, groups map[string]string) {
	for g := range v.EdgeGateways {
		resolve(&v.EdgeGateways[g].Group, groups)
	}
	for n := range v.Networks {
		resolve(&v.Networks[n].Group, groups)
	}
}

// fillGateways sets the IDs of gateways. If a VDC has routed networks but no gateway, it adds one.
func (i *Source) fillGateways(v *store.VDC, external map[string]string) {
	routed := slices.ContainsFunc(v.Networks, func(n store.Network) bool { return n.Type == store.Routed && n.Edge == "" })
	if routed && len(v.EdgeGateways) == 0 {
		v.EdgeGateways = []store.EdgeGateway{{Name: v.Name + "-gateway"}}
	}
	byName := map[string]string{}
	for g := range v.EdgeGateways {
		gw := &v.EdgeGateways[g]
		i.set(&gw.ID, "gateway", v.ID+gw.Name)
		byName[gw.Name] = gw.ID
		for u := range gw.Uplinks {
			resolve(&gw.Uplinks[u].Network, external)
		}
	}
	for n := range v.Networks {
		net := &v.Networks[n]
		if net.Type == store.Routed && net.Edge == "" {
			net.Edge = v.EdgeGateways[0].ID
		}
		resolve(&net.Edge, byName)
	}
}

// resolve replaces a name by its ID.
func resolve(ref *string, byName map[string]string) {
	if id, ok := byName[*ref]; ok {
		*ref = id
	}
}

// set sets an empty ID.
func (i *Source) set(id *string, kind, name string) {
	if *id == "" {
		*id = i.Named(kind, name)
	}
}
