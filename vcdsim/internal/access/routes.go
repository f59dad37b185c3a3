// SPDX-License-Identifier: Apache-2.0

package access

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// Routes adds the routes of sessions, roles and tokens.
func Routes(add api.AddRoute) {
	sessionRoutes(add)
	roleRoutes(add)
	tokenRoutes(add)
}
