// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
)

// Routes adds the routes of edge gateways, external networks and IP Spaces.
func Routes(add api.AddRoute) {
	legacyEdgeRoutes(add)
	edgeRoutes(add)
	externalRoutes(add)
	spaceRoutes(add)
	ipsecRoutes(add)
	l2Routes(add)
}

// Operations returns the operations on edge gateways, external networks and IP Spaces.
func Operations() map[string]cloud.Operation {
	out := cloud.Changes(
		cloud.Changed{Kind: "edgeGateway", Title: "Edge Gateway", Remove: commitDeleteEdge},
		cloud.Changed{Kind: "externalNetwork", Title: "External Network", Remove: commitDeleteExternal},
		cloud.Changed{Kind: "ipSpace", Title: "IP Space", Remove: commitDeleteSpace},
		cloud.Changed{Kind: "ipSpaceUplink", Title: "IP Space Uplink", Remove: commitDeleteSpaceUplink},
		cloud.Changed{Kind: "ipSpaceAllocation", Title: "IP Space Allocation", Remove: commitRelease},
	)
	out["allocate ipSpace"] = cloud.NewChange("create", "ipSpaceAllocation", "IP Space Allocation", commitAllocate)
	out["update ipSpaceAllocation"] = cloud.NewChange("update", "ipSpaceAllocation", "IP Space Allocation", commitUsageState)
	return out
}

// Collections returns the collections of NAT rules, static routes, BGP neighbors, prefix lists and VPN tunnels.
func Collections() []*documents.Collection {
	return []*documents.Collection{
		natCollection(),
		routeCollection(),
		neighborCollection(),
		prefixListCollection(),
		ipsecCollection(),
		l2Collection(),
	}
}
