// SPDX-License-Identifier: Apache-2.0

// Package api makes calls of both of VCD's APIs: it encodes and decodes, names the organization that a provider works in,
// and reads queries and lists to their ends. It does not know what the objects are.
package api
