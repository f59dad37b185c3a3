// SPDX-License-Identifier: Apache-2.0

// Package machines changes vApps, VMs and disks when tasks end. It creates and removes them, assigns addresses, changes
// power states, hardware and snapshots, places VMs on hosts and ends leases. It does not know the requests that started
// the tasks.
package machines
