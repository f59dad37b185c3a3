// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// Routes are the routes of catalogs, templates, media, and of the sections of vApps and templates.
func Routes(add api.AddRoute) {
	catalogRoutes(add)
	mediaRoutes(add)
	templateRoutes(add)
	sectionRoutes(add)
}
