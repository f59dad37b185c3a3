// SPDX-License-Identifier: Apache-2.0

// Package bench measures what the manager costs: its calls to VCD, its time beside VCD's own, its memory. Whatever
// can be counted is a test with a budget. Those tests run the real reconcilers with real caches and queues in a
// bubble of testing/synctest, where time stands still while any goroutine works: hours pass in seconds, and how fast
// the machine is does not matter. Whatever depends on the machine is a benchmark, on real programs, by `make bench`.
package bench
