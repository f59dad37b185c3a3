// SPDX-License-Identifier: Apache-2.0

package transport

import "time"

// A Clock returns the time. Tests use their own clocks.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// RealClock is the system clock.
type RealClock struct{}

// Now implements [Clock].
func (RealClock) Now() time.Time { return time.Now() }

// After implements [Clock].
func (RealClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
