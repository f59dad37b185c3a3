// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// IPSpaces computes the used and free values of IP Spaces.
type IPSpaces struct{ cloud *cloud.Cloud }

// spacesOf returns the IP Spaces of a cloud.
func spacesOf(c *cloud.Cloud) IPSpaces { return IPSpaces{cloud: c} }

// withUplinkTo returns the IP Spaces with an uplink to an external network.
func (sp IPSpaces) withUplinkTo(external string) []*store.IPSpace {
	var out []*store.IPSpace
	for i := range sp.cloud.Store.Model.IPSpaces {
		p := &sp.cloud.Store.Model.IPSpaces[i]
		if slices.ContainsFunc(p.Uplinks, func(u store.SpaceUplink) bool { return u.Network == external }) {
			out = append(out, p)
		}
	}
	return out
}

// assignedTo reports whether an organization can use a space. It can if it owns the space, or if one of its gateways
// has an uplink to a network on which the space is available. An organization that still has allocations can also use
// the space. This is an assumption: allocations outlive the gateway, so that they can be released.
func (sp IPSpaces) assignedTo(p *store.IPSpace, orgID string) bool {
	if p.OrgID != "" {
		return p.OrgID == orgID
	}
	if slices.ContainsFunc(p.Allocations, func(a store.IPAllocation) bool { return a.OrgID == orgID }) {
		return true
	}
	org := sp.cloud.Store.Org(orgID)
	return org != nil && slices.ContainsFunc(org.VDCs, func(v store.VDC) bool {
		return slices.ContainsFunc(v.EdgeGateways, func(g store.EdgeGateway) bool {
			return slices.ContainsFunc(g.Uplinks, func(u store.Uplink) bool { return slices.Contains(sp.withUplinkTo(u.Network), p) })
		})
	})
}

// ownSpace returns the IP Space in the path.
func ownSpace(r *api.Request) (*store.IPSpace, error) {
	p := r.Cloud.Store.Space(store.Bare(r.Vars["id"]))
	if p == nil || !seesSpace(r, p) {
		return nil, store.Forbidden("IP_SPACE_VIEW", r.Vars["id"])
	}
	return p, nil
}
