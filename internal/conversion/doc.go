// SPDX-License-Identifier: Apache-2.0

// Package conversion converts objects between the API versions of CAPVCD and v1beta4, which is stored.
//
// Each version of CAPVCD is a part of the next one, so there is one mapping per kind, between v1beta3 and v1beta4: a pair
// of functions that list the fields (cluster.go, machine.go, templates.go). They know nothing of what a version cannot
// express.
//
// What a version cannot express survives in the annotation conversion-data of Cluster API: an object read in a version of
// CAPVCD has our whole object in it, and ours has the whole object of CAPVCD, if a field of that has no home. An
// annotation is never believed blindly. The conversion computes what the reader was shown, takes the difference from what
// came back as the reader's changes, and applies only these to what was saved (kind.go, merge.go).
//
// Credentials never enter an annotation: credentials.go.
package conversion
