// SPDX-License-Identifier: Apache-2.0

// Package guests runs the guests of VMs. It boots and ends guests as VMs are powered on and off, and stores their
// reports.
package guests
