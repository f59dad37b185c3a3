// SPDX-License-Identifier: Apache-2.0

package vcdsim

// computeRoutes are the routes of vApps, VMs, disks, tasks, and of what is attached to any entity: metadata and access settings.
func computeRoutes(add addRoute) {
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
