// SPDX-License-Identifier: Apache-2.0

package vcdsim

// vdcsRoutes are the routes of VDCs, their policies, and the provider VDC.
func vdcsRoutes(add addRoute) {
	vdcRoutes(add)
	vdcCapacityRoutes(add)
	policyRoutes(add)
	policyAdminRoutes(add)
	providerRoutes(add)
}
