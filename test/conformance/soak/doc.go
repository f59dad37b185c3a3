// SPDX-License-Identifier: Apache-2.0

// Package soak lets many clients work at random on one simulator at once: VMware's Go client makes, changes and deletes
// vApps, VMs, disks, networks, load balancers, NAT rules, tunnels, entities and IP allocations. Once all have deleted
// what they made, the simulator must be as it was before.
//
//	go test ./soak                              # 20 seconds
//	go test ./soak -duration=1h -seed=7         # make sim-soak DURATION=1h SEED=7
package soak
