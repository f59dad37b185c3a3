// SPDX-License-Identifier: Apache-2.0

// Package frontend takes requests in, at the address of a site or of one of its cells: it finds the route, applies
// fault rules and latencies, checks session, version and rights, runs the handler under the lock, and writes the
// answer.
package frontend
