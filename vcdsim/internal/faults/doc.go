// SPDX-License-Identifier: Apache-2.0

// Package faults contains the rules for simulated failures: which requests and tasks they match, how often, and their
// effects.
package faults
