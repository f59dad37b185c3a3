// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// Routes adds the routes of organizations and their administration.
func Routes(add api.AddRoute) {
	orgRoutes(add)
	adminRoutes(add)
	adminOrgRoutes(add)
	vdcChangeRoutes(add)
	connectionRoutes(add)
	ldapRoutes(add)
	oidcRoutes(add)
	auditRoutes(add)
}
