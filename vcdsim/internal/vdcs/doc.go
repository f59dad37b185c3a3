// SPDX-License-Identifier: Apache-2.0

// Package vdcs answers for VDCs, their capacity, storage profiles, hardware versions and compute policies, and for
// the provider VDC that they are made from.
package vdcs
