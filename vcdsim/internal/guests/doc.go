// SPDX-License-Identifier: Apache-2.0

// Package guests runs what is inside VMs: it boots and ends guests as VMs are powered on and off, and stores what
// they report.
package guests
