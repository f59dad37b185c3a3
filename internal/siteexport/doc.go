// SPDX-License-Identifier: Apache-2.0

// Package siteexport reads an organization of a live site and writes it to a file with which the simulator can start.
// It only reads from the site. The file contains nothing that identifies the site: names are numbered, and addresses
// are moved to ranges that no real network uses. The file only has the fields in model.go, which is a closed list.
package siteexport
