// SPDX-License-Identifier: Apache-2.0

// Package vcd is the only code that talks to VMware Cloud Director. A [Pool] shares sessions; a [Session] offers VDCs,
// vApps, VMs, networks, load balancers and the rest by noun, a file for each. Every request takes the same way down through
// the packages below: api (calls of both APIs), login (token, API version), transport (fair queue, circuit breaker, limits,
// metrics), failure (typed errors). Nothing but [Tasks.Wait] waits for a task. The package knows nothing of Kubernetes.
package vcd
