// SPDX-License-Identifier: Apache-2.0

// Package cloud holds what is simulated and what changes it in the course of time: the store, ids, assumptions and
// durations, tasks with their operations and locks, and alarms. It knows no requests and no nouns: those give it
// operations as values.
package cloud
