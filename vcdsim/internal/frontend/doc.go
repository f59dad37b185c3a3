// SPDX-License-Identifier: Apache-2.0

// Package frontend receives requests at the address of a site or of one of its cells. It finds the route, applies fault
// rules and latencies, checks the session, the version and the rights, runs the handler under the lock, and writes the
// response.
package frontend
