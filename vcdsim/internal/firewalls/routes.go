// SPDX-License-Identifier: Apache-2.0

package firewalls

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
)

// Routes are the routes of firewalls and their groups.
func Routes(add api.AddRoute) {
	groupRoutes(add)
	dfwRoutes(add)
	firewallRoutes(add)
}

// Collections are application port profiles and firewall groups.
func Collections() []*documents.Collection {
	return []*documents.Collection{profileCollection(), groupCollection()}
}

// Settings are the firewalls of edge gateways and of VDC groups.
func Settings() []*documents.Setting {
	return append(dfwSettings(), edgeFirewall())
}
