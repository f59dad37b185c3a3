// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestWaitingForALongReadOfAnotherCaller(t *testing.T) {
	reads := map[string]struct {
		operation string
		read      func(context.Context, *Session) error
	}{
		"list of VMs": {
			operation: opQueryVM,
			read: func(ctx context.Context, s *Session) error {
				_, err := s.Inventory.VMs(ctx, inVDC(), "a", time.Minute)
				return err
			},
		},
		"lookup": {
			operation: "GET /api/query?type=orgVdc",
			read: func(ctx context.Context, s *Session) error {
				_, err := s.VDCs.FindVDC(ctx, "acme-vdc")
				return err
			},
		},
	}
	for name, tt := range reads {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clock := newFakeClock()
			f := newFakeVCD(t)
			s := session(t, f, func(o *PoolOptions) { o.Clock = clock })
			hang(t, f, tt.operation)
			read := func(ctx context.Context) <-chan error {
				result := make(chan error, 1)
				go func() { result <- tt.read(ctx, s) }()
				return result
			}
			read(t.Context())
			g.Eventually(func() int { return f.count(tt.operation) }).Should(Equal(1))
			waiting := clock.Waiting()
			ofUnit := read(As(t.Context(), "c1"))
			ofOther := read(t.Context())
			g.Eventually(clock.Waiting).Should(Equal(waiting + 2))

			clock.Advance(10 * time.Second)

			var err error
			g.Eventually(ofUnit).Should(Receive(&err))
			g.Expect(err).To(MatchError(ErrLater))
			g.Expect(RetryAfter(err)).To(And(BeNumerically(">=", 5*time.Second), BeNumerically("<", 10*time.Second)))
			g.Eventually(ofOther).Should(Receive(MatchError(ErrUnavailable)))

			again := read(As(t.Context(), "c1"))
			g.Eventually(clock.Waiting).Should(Equal(1))
			clock.Advance(10 * time.Second)

			g.Eventually(again).Should(Receive(MatchError(ErrUnavailable)), "VCD was silent for 20 s")
			g.Expect(f.count(tt.operation)).To(Equal(1))
		})
	}
}
