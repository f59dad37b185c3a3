// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// Routes adds the routes of VDCs, their policies, the provider VDC, and its vSphere and NSX resources.
func Routes(add api.AddRoute) {
	vdcRoutes(add)
	vdcCapacityRoutes(add)
	policyRoutes(add)
	policyAdminRoutes(add)
	providerRoutes(add)
	vsphereRoutes(add)
	poolRoutes(add)
}
