// SPDX-License-Identifier: Apache-2.0

// Package service computes the desired state of the load balancer of a Service, from the Service, the Nodes and the
// annotations of a cloud. It is pure, and has no code for a specific cloud.
package service
