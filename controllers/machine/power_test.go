// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRevivals(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name   string
		stored string
		wait   time.Duration
		next   string
	}{
		{"the first comes at once", "", 0, "1 2026-08-01T12:00:00Z"},
		{"the second waits a minute", "1 2026-08-01T11:59:30Z", 30 * time.Second, "2 2026-08-01T12:00:00Z"},
		{"each waits twice as long", "4 2026-08-01T11:55:00Z", 3 * time.Minute, "5 2026-08-01T12:00:00Z"},
		{"after the fifth there is a long pause", "5 2026-08-01T11:30:00Z", 30 * time.Minute, "6 2026-08-01T12:00:00Z"},
		{"what is long ago does not count", "5 2026-08-01T10:59:00Z", 0, "1 2026-08-01T12:00:00Z"},
		{"what cannot be read is none", "often", 0, "1 2026-08-01T12:00:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			r := parseRevivals(tt.stored)

			g.Expect(r.wait(now)).To(Equal(tt.wait))
			g.Expect(r.next(now).String()).To(Equal(tt.next))
		})
	}
}
