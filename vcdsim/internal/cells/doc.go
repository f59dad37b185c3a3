// SPDX-License-Identifier: Apache-2.0

// Package cells simulates the servers of a site. Each is up or down, serves the API versions of a release, and may have
// its own address.
package cells
