// SPDX-License-Identifier: Apache-2.0

package vcdsim

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"

// networkRoutesAll are the routes of networks, edge gateways, IP Spaces, VDC groups and firewalls.
func networkRoutesAll(add addRoute) {
	networkRoutes(add)
	legacyEdgeRoutes(add)
	edgeRoutes(add)
	groupRoutes(add)
	externalRoutes(add)
	resourceRoutes(add)
	orgNetworkRoutes(add)
	spaceRoutes(add)
	vdcGroupRoutes(add)
	dfwRoutes(add)
	firewallRoutes(add)
}

// networkOperations are the operations on what belongs to networks and is not a document.
func networkOperations() map[string]operation {
	out := map[string]operation{}
	out["allocate ipSpace"] = networkOperation("create", "ipSpaceAllocation", "IP Space Allocation", commitAllocate)
	for _, x := range []struct {
		kind, title string
		remove      func(*cloud, *store.Task) error
	}{
		{"edgeGateway", "Edge Gateway", commitDeleteEdge},
		{"externalNetwork", "External Network", commitDeleteExternal},
		{"orgVdcNetwork", "Organization VDC Network", commitDeleteNetwork},
		{"ipSpace", "IP Space", commitDeleteSpace},
		{"ipSpaceUplink", "IP Space Uplink", commitDeleteSpaceUplink},
		{"ipSpaceAllocation", "IP Space Allocation", commitRelease},
		{"vdcGroup", "Data Center Group", commitDeleteGroup},
	} {
		out["create "+x.kind] = networkOperation("create", x.kind, x.title, nothing)
		out["update "+x.kind] = networkOperation("update", x.kind, x.title, nothing)
		out["delete "+x.kind] = networkOperation("delete", x.kind, x.title, x.remove)
	}
	out["update ipSpaceAllocation"] = networkOperation("update", "ipSpaceAllocation", "IP Space Allocation", commitMark)
	return out
}

// networkCollections are the collections of documents that belong to networks.
func networkCollections() []*collection {
	return []*collection{
		natCollection(),
		profileCollection(),
		groupCollection(),
		routeCollection(),
		neighborCollection(),
		prefixListCollection(),
		bindingCollection(),
		templateCollection(),
	}
}

// networkSettings are the settings of edge gateways, firewalls and VDCs' networks.
func networkSettings() []*setting {
	out := append(gatewaySettings(), dfwSettings()...)
	return append(out, vdcNetworkProfile(), templateDefaults())
}
