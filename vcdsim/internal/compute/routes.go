// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// Routes are the routes of vApps, VMs, disks, tasks, and of what is attached to any entity: metadata and access settings.
func Routes(add api.AddRoute) {
	taskRoutes(add)
	vappRoutes(add)
	vmRoutes(add)
	vmSettingRoutes(add)
	diskRoutes(add)
	affinityRoutes(add)
	snapshotRoutes(add)
	linkedCloneRoutes(add)
	standaloneRoutes(add)
	metadataRoutes(add)
	accessRoutes(add)
	securityTagRoutes(add)
}
