// SPDX-License-Identifier: Apache-2.0

package vcdsim

// orgsRoutes are the routes of organizations and their administration.
func orgsRoutes(add addRoute) {
	orgRoutes(add)
	adminRoutes(add)
	adminOrgRoutes(add)
	vdcChangeRoutes(add)
}
