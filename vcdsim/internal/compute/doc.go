// SPDX-License-Identifier: Apache-2.0

// Package compute answers requests about vApps, VMs and independent disks, and about what any entity can have: tasks,
// metadata, access settings and security tags. What their tasks do is in package machines.
package compute
