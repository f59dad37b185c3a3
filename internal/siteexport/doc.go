// SPDX-License-Identifier: Apache-2.0

// Package siteexport reads an organization of a live site and makes of it the file that the simulator starts from. It
// only reads. Nothing that identifies the site gets into the file: names are numbered, addresses are moved to ranges that
// nothing real uses, and what a file can have is the closed list of fields in model.go.
package siteexport
