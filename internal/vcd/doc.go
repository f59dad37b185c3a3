// SPDX-License-Identifier: Apache-2.0

// Package vcd is the only code that communicates with VMware Cloud Director. A [Pool] shares sessions. A [Session] has
// a client for each noun, such as VDCs, vApps, VMs, networks and load balancers, in a file of its own. Every request
// passes through the packages below: api (requests to both APIs), login (token, API version), transport (fair queue,
// circuit breaker, limits, metrics), failure (typed errors). Only [Tasks.Wait] waits for a task. The package does not
// depend on Kubernetes.
package vcd
