// SPDX-License-Identifier: Apache-2.0

// Package cloud holds the simulated state and the parts that change it over time: the store, IDs, assumptions and
// durations, tasks with their operations and locks, and alarms. It does not know requests or nouns; nouns register
// operations as values.
package cloud
