// SPDX-License-Identifier: Apache-2.0

// Package faults has the rules by which a simulator fails: what they match, how often, and what happens.
package faults
