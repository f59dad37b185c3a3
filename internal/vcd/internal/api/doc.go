// SPDX-License-Identifier: Apache-2.0

// Package api sends requests to both of VCD's APIs. It encodes and decodes documents, names the organization that a
// provider session works in, and reads all pages of queries and lists. It is independent of the meaning of the objects.
package api
