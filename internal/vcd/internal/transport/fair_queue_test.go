// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// newTestQueue lets a call through every 100 ms.
func newTestQueue(inFlight int) *fairQueue {
	return newFairQueue(rate.NewLimiter(10, 1), inFlight, RealClock{})
}

// oneCall makes a call without duration.
func oneCall(ctx context.Context, queue *fairQueue) error {
	_, err := queue.acquire(ctx)
	if err == nil {
		queue.release()
	}
	return err
}

func TestCallersAreServedInRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := newTestQueue(8)
		g.Expect(oneCall(t.Context(), queue)).To(Succeed(), "takes the free slot")
		var mu sync.Mutex
		var order []string
		start := func(caller string) {
			go func() {
				if oneCall(As(t.Context(), caller), queue) == nil {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, caller)
				}
			}()
			synctest.Wait()
		}

		for range 4 {
			start("many")
		}
		start("few")
		start("few")
		<-time.After(time.Second)
		synctest.Wait()

		g.Expect(order).To(Equal([]string{"many", "few", "many", "few", "many", "many"}))
	})
}

func TestOneBusyCallerDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := newTestQueue(8)
		g.Expect(oneCall(t.Context(), queue)).To(Succeed())
		results := make(chan error, 200)
		for range 200 {
			go func() { results <- oneCall(As(t.Context(), "many"), queue) }()
		}
		synctest.Wait()

		g.Expect(results).To(HaveLen(192), "eight calls wait, no other is blocked")
		start := time.Now()
		g.Expect(oneCall(As(t.Context(), "few"), queue)).To(Succeed())
		g.Expect(time.Since(start)).To(BeNumerically("<=", 300*time.Millisecond), "one turn of the other caller is first")

		var latest time.Duration
		for range 192 {
			err := <-results
			g.Expect(err).To(MatchError(failure.ErrLater))
			g.Expect(err.Error()).To(Equal("requests of other clusters are sent first"))
			g.Expect(failure.RetryAfter(err)).To(And(BeNumerically(">=", minDelay), BeNumerically("<=", maxDelay)))
			latest = max(latest, failure.RetryAfter(err))
		}
		g.Expect(latest).To(BeNumerically(">", maxDelay/2), "they do not return all at once")
		<-time.After(time.Minute)
	})
}

func TestStartedWorkIsNotTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := newTestQueue(1)
		ctx := As(t.Context(), "many")
		g.Expect(oneCall(ctx, queue)).To(Succeed())
		_, err := queue.acquire(t.Context()) // holds the only slot
		g.Expect(err).NotTo(HaveOccurred())
		begun := make(chan error, 2)
		for range 2 {
			go func() { begun <- oneCall(ctx, queue) }()
		}
		synctest.Wait()

		g.Expect(oneCall(As(t.Context(), "many"), queue)).To(MatchError(failure.ErrLater))
		g.Expect(begun).To(BeEmpty(), "they wait")
		queue.release()
		g.Expect(<-begun).To(Succeed())
		g.Expect(<-begun).To(Succeed())
	})
}

func TestFirstCallsAreServedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := newTestQueue(1)
		_, err := queue.acquire(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		start := time.Now()

		g.Expect(oneCall(As(t.Context(), "a"), queue)).To(MatchError(failure.ErrLater))
		g.Expect(time.Since(start)).To(Equal(firstCallWait))
		g.Expect(oneCall(t.Context(), queue)).To(MatchError(failure.ErrUnavailable))
		g.Expect(time.Since(start)).To(Equal(firstCallWait + MaxWait))

		queue.release()
		<-time.After(time.Second)
		g.Expect(oneCall(As(t.Context(), "a"), queue)).To(Succeed(), "canceled callers are dropped")
	})
}

func TestQueuesOfFinishedCallersAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := newTestQueue(1)
		_, err := queue.acquire(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		for n := range 100 {
			g.Expect(oneCall(As(t.Context(), fmt.Sprint(n)), queue)).To(MatchError(failure.ErrLater))
		}

		g.Expect(len(queue.queues)).To(BeNumerically("<=", 3))
	})
}
