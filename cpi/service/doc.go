// SPDX-License-Identifier: Apache-2.0

// Package service computes what the load balancer of a Service should be, from the Service, the Nodes and the
// annotations that a cloud understands. It is pure and knows no cloud.
package service
