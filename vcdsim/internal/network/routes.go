// SPDX-License-Identifier: Apache-2.0

package network

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
)

// Routes adds the routes of networks, VDC groups and the resources of NSX.
func Routes(add api.AddRoute) {
	networkRoutes(add)
	resourceRoutes(add)
	orgNetworkRoutes(add)
	vdcGroupRoutes(add)
}

// Operations returns the operations on networks and VDC groups.
func Operations() map[string]cloud.Operation {
	return cloud.Changes(
		cloud.Changed{Kind: "orgVdcNetwork", Title: "Organization VDC Network", Remove: commitDeleteNetwork},
		cloud.Changed{Kind: "vdcGroup", Title: "Data Center Group", Remove: commitDeleteGroup},
	)
}

// Collections returns the collections of DHCP bindings and segment profile templates.
func Collections() []*documents.Collection {
	return []*documents.Collection{bindingCollection(), templateCollection()}
}

// Settings returns the network profiles of VDCs, and the default segment profile templates.
func Settings() []*documents.Setting {
	return []*documents.Setting{vdcNetworkProfile(), templateDefaults()}
}
