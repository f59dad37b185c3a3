// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// Routes adds the routes of catalogs, templates and media, and of the sections of vApps, VMs and templates.
func Routes(add api.AddRoute) {
	catalogRoutes(add)
	mediaRoutes(add)
	templateRoutes(add)
	sectionRoutes(add)
}
