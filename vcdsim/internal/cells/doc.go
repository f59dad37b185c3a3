// SPDX-License-Identifier: Apache-2.0

// Package cells simulates the servers of a site: each is up or down, serves the API versions of a release and may
// have an address of its own.
package cells
