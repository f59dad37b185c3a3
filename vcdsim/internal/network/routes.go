// SPDX-License-Identifier: Apache-2.0

package network

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
)

// Routes are the routes of networks, VDC groups and the resources of NSX.
func Routes(add api.AddRoute) {
	networkRoutes(add)
	resourceRoutes(add)
	orgNetworkRoutes(add)
	vdcGroupRoutes(add)
}

// Operations are the operations on networks and VDC groups.
func Operations() map[string]cloud.Operation {
	return cloud.Changes(
		cloud.Changed{Kind: "orgVdcNetwork", Title: "Organization VDC Network", Remove: commitDeleteNetwork},
		cloud.Changed{Kind: "vdcGroup", Title: "Data Center Group", Remove: commitDeleteGroup},
	)
}

// Collections are DHCP bindings and templates of segment profiles.
func Collections() []*documents.Collection {
	return []*documents.Collection{bindingCollection(), templateCollection()}
}

// Settings are the settings of VDCs' networks, and the defaults of segment profiles.
func Settings() []*documents.Setting {
	return []*documents.Setting{vdcNetworkProfile(), templateDefaults()}
}
