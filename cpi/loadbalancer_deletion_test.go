package cpi

import (
	"context"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
)

func TestDeletionWaitsForABusyPlace(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	for _, tt := range []struct {
		name  string
		tries int32
		end   types.GomegaMatcher
	}{
		{"that stays busy", removalRounds + 1, MatchError(plan.ErrBusy)},
		{"that is free again soon", 3, BeNil()},
	} {
		var tried atomic.Int32
		b.balancer.fail = func(fakeStep) error {
			if tried.Add(1) < tt.tries {
				return plan.ErrBusy
			}
			return nil
		}
		deleted := make(chan error, 1)
		go func() { deleted <- b.them.EnsureLoadBalancerDeleted(context.Background(), "", s) }()
		for n := range min(tt.tries, removalRounds) - 1 {
			b.Eventually(tried.Load).Should(Equal(n+1), tt.name)
			b.Eventually(b.clock.HasWaiters).Should(BeTrue(), tt.name)
			b.clock.Step(2 * soon)
		}
		b.Eventually(deleted).Should(Receive(tt.end), tt.name)
	}
	b.Expect(b.balancer.left()).To(BeZero())
}
