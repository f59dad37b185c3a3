// SPDX-License-Identifier: Apache-2.0

package network

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Routes are the routes of networks, edge gateways, IP Spaces, VDC groups and firewalls.
func Routes(add api.AddRoute) {
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

// Operations are the operations on what belongs to networks and is not a document.
func Operations() map[string]cloud.Operation {
	out := map[string]cloud.Operation{
		"allocate ipSpace": cloud.NewChange("create", "ipSpaceAllocation", "IP Space Allocation", commitAllocate),
	}
	for _, x := range []struct {
		kind, title string
		remove      func(*cloud.Cloud, *store.Task) error
	}{
		{"edgeGateway", "Edge Gateway", commitDeleteEdge},
		{"externalNetwork", "External Network", commitDeleteExternal},
		{"orgVdcNetwork", "Organization VDC Network", commitDeleteNetwork},
		{"ipSpace", "IP Space", commitDeleteSpace},
		{"ipSpaceUplink", "IP Space Uplink", commitDeleteSpaceUplink},
		{"ipSpaceAllocation", "IP Space Allocation", commitRelease},
		{"vdcGroup", "Data Center Group", commitDeleteGroup},
	} {
		out["create "+x.kind] = cloud.NewChange("create", x.kind, x.title, cloud.Nothing)
		out["update "+x.kind] = cloud.NewChange("update", x.kind, x.title, cloud.Nothing)
		out["delete "+x.kind] = cloud.NewChange("delete", x.kind, x.title, x.remove)
	}
	out["update ipSpaceAllocation"] = cloud.NewChange("update", "ipSpaceAllocation", "IP Space Allocation", commitMark)
	return out
}

// Collections are the collections of documents that belong to networks.
func Collections() []*documents.Collection {
	return []*documents.Collection{
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

// Settings are the settings of edge gateways, firewalls and VDCs' networks.
func Settings() []*documents.Setting {
	out := append(gatewaySettings(), dfwSettings()...)
	return append(out, vdcNetworkProfile(), templateDefaults())
}
