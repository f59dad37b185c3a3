// SPDX-License-Identifier: Apache-2.0

// Package compute handles the requests for vApps, VMs and independent disks, and for the properties of any entity:
// tasks, metadata, access settings and security tags. It does not know the effects of the tasks that it starts; package
// machines applies them.
package compute
