// SPDX-License-Identifier: Apache-2.0

// Package compute answers for vApps, VMs and independent disks, and does the work of their tasks.
package compute
