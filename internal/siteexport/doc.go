// SPDX-License-Identifier: Apache-2.0

// Package siteexport reads an organization of a live site and writes it to a file with which the simulator can start.
// It only reads from the site. The file contains nothing that identifies the site: names are numbered, addresses are
// moved to ranges that no real network uses, and model.go contains the closed list of fields.
package siteexport
