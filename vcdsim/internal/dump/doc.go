// SPDX-License-Identifier: Apache-2.0

// Package dump writes everything that is simulated as JSON, and restores it.
package dump
