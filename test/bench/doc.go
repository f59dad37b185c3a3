// SPDX-License-Identifier: Apache-2.0

// Package bench measures the cost of the manager: its calls to VCD, its overhead on top of the time of VCD's tasks, and
// its memory. Costs that do not depend on the machine are tests with budgets. These tests run the real reconcilers with
// real caches and queues in a bubble of testing/synctest, whose clock advances only while all goroutines are blocked:
// hours pass in seconds, and the speed of the machine does not matter. Costs that depend on the machine are measured by
// a benchmark of real programs, which `make bench` runs.
package bench
