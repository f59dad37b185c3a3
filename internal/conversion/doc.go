// SPDX-License-Identifier: Apache-2.0

// Package conversion converts objects between the API versions of CAPVCD and v1beta4, the storage version.
//
// Each version of CAPVCD is a subset of the next, so one mapping per kind, between v1beta3 and v1beta4, is sufficient.
// It is a pair of functions that list the fields (cluster.go, machine.go, templates.go). These functions ignore fields
// without an equivalent.
//
// The annotation conversion-data of Cluster API preserves data that a version cannot express. An object read in a
// CAPVCD version contains the whole v1beta4 object. A v1beta4 object contains the whole CAPVCD object if a field of
// that object has no equivalent. The conversion never trusts an annotation blindly. It computes the object that the
// reader received, compares it with the object that the reader sent back, and applies only the differences to the saved
// object (kind.go, merge.go).
//
// Annotations never contain credentials: see credentials.go.
package conversion
