// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// Routes are the routes of VDCs, their policies, and the provider VDC with what vSphere and NSX have for it.
func Routes(add api.AddRoute) {
	vdcRoutes(add)
	vdcCapacityRoutes(add)
	policyRoutes(add)
	policyAdminRoutes(add)
	providerRoutes(add)
	vsphereRoutes(add)
	poolRoutes(add)
}
