// SPDX-License-Identifier: Apache-2.0

// Package ovf writes vApps and VMs as documents of the XML API: their sections, hardware items and settings.
package ovf
