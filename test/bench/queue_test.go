// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An endingQueue hands out no items after the end of its test. If a priority queue of controller-runtime (v0.24) is
// shut down while an item becomes ready, it may offer the item forever to a worker that has ended. A bubble does not
// end then.
type endingQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	test context.Context //nolint:containedctx // its end is all that counts
}

// queued returns the options of a controller in a bubble.
func queued(test context.Context, workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		NewQueue: func(
			name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return endingQueue{
				test: test,
				PriorityQueue: priorityqueue.New(name,
					func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
			}
		},
	}
}

func (q endingQueue) over() bool { return q.test.Err() != nil }

// Add implements workqueue.TypedInterface.
func (q endingQueue) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q endingQueue) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	if !q.over() {
		q.PriorityQueue.AddWithOpts(o, items...)
	}
}

// Done implements workqueue.TypedInterface. An item that is not done is not handed out again.
func (q endingQueue) Done(item reconcile.Request) {
	if !q.over() {
		q.PriorityQueue.Done(item)
	}
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q endingQueue) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	if q.over() {
		return reconcile.Request{}, 0, true
	}
	return q.PriorityQueue.GetWithPriority()
}

// A bubble does not end while its queue still offers an item: this test panics then.
func TestAQueueThatEndsHoldsNothingUp(t *testing.T) {
	for round := range 2000 {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
			q, ok := queued(ctx, 1).NewQueue("",
				workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()).(priorityqueue.PriorityQueue[reconcile.Request])
			NewWithT(t).Expect(ok).To(BeTrue(), "controllers take it for a priority queue")
			for range 4 {
				go work(q)
			}
			synctest.Wait()
			end()
			for n := range 4 {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint(n)}})
			}
			for range round % 20 { // The result depends on the moment of the shutdown.
				runtime.Gosched()
			}
			q.ShutDown()
		})
	}
}

// work discards the items of a queue until the queue is shut down.
func work(q priorityqueue.PriorityQueue[reconcile.Request]) {
	for {
		item, _, shutdown := q.GetWithPriority()
		if shutdown {
			return
		}
		q.Done(item)
	}
}
