// SPDX-License-Identifier: Apache-2.0

package firewalls

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
)

// Routes adds the routes of firewalls and their groups.
func Routes(add api.AddRoute) {
	groupRoutes(add)
	dfwRoutes(add)
	firewallRoutes(add)
}

// Collections returns the collections of application port profiles and firewall groups.
func Collections() []*documents.Collection {
	return []*documents.Collection{profileCollection(), groupCollection()}
}

// Settings returns the firewall settings of edge gateways and VDC groups.
func Settings() []*documents.Setting {
	return append(dfwSettings(), edgeFirewall())
}
