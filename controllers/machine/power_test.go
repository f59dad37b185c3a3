// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestRevivals(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	at := func(hour, minute, second int) time.Time {
		return time.Date(2026, 8, 1, hour, minute, second, 0, time.UTC)
	}
	tests := []struct {
		name   string
		stored revivals
		wait   time.Duration
		next   int
	}{
		{"the first comes at once", revivals{}, 0, 1},
		{"the second waits a minute", revivals{1, at(11, 59, 30)}, 30 * time.Second, 2},
		{"each waits twice as long", revivals{4, at(11, 55, 0)}, 3 * time.Minute, 5},
		{"after the fifth there is a long pause", revivals{5, at(11, 30, 0)}, 30 * time.Minute, 6},
		{"what is long ago does not count", revivals{5, at(10, 59, 0)}, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var recorded infrav1.PoweredOnAgain
			if tt.stored.count > 0 {
				recorded = tt.stored.record()
			}

			r := revivalsOf(recorded)

			g.Expect(r.wait(now)).To(Equal(tt.wait))
			g.Expect(r.next(now)).To(Equal(revivals{tt.next, now}))
		})
	}
}
