// SPDX-License-Identifier: Apache-2.0

// Package ovf renders vApps and VMs as documents of the XML API: their sections, hardware items and settings. It does
// not read requests and changes nothing.
package ovf
