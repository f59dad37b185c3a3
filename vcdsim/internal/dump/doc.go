// SPDX-License-Identifier: Apache-2.0

// Package dump writes the simulated state as JSON and restores it.
package dump
