// SPDX-License-Identifier: Apache-2.0

package siteexport

// KnownRights are the rights that a file may name.
var KnownRights = knownRights
