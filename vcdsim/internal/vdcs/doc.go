// SPDX-License-Identifier: Apache-2.0

// Package vdcs handles the requests for VDCs, their capacity, storage profiles, hardware versions and compute policies,
// and for the provider VDC that backs them. Package compute handles the vApps, VMs and disks in a VDC.
package vdcs
