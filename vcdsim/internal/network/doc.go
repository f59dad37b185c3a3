// SPDX-License-Identifier: Apache-2.0

// Package network answers for networks of VDCs, groups of VDCs, and what NSX has for them.
package network
