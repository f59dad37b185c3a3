// SPDX-License-Identifier: Apache-2.0

// Package machines changes vApps, VMs and disks when tasks end: it makes and removes them, assigns addresses, changes
// power, hardware and snapshots, places VMs on hosts and ends leases. It knows no requests.
package machines
