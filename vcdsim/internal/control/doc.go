// SPDX-License-Identifier: Apache-2.0

// Package control serves the control API of a simulator and its page: state, faults, cells, clock, requests and
// metrics. It is not part of VCD.
package control
