// SPDX-License-Identifier: Apache-2.0

// Package clock provides the time of a simulator, which may run at any speed or stand still.
package clock
