// SPDX-License-Identifier: Apache-2.0

package siteexport

// KnownRights contains the rights that a file may contain.
var KnownRights = knownRights
