// SPDX-License-Identifier: Apache-2.0

// Package bench measures the cost of the manager: its calls to VCD, its time in addition to VCD's own, and its memory.
// Everything that can be counted is a test with a budget. These tests run the real reconcilers with real caches and
// queues in a bubble of testing/synctest, where time stands still while any goroutine works: hours pass in seconds, and
// the speed of the machine does not matter. Everything that depends on the machine is a benchmark of real programs,
// which `make bench` runs.
package bench
