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

// A stoppableQueue returns no items after its test has ended. If a priority queue of controller-runtime (v0.24) is shut
// down while an item becomes ready, it may offer the item forever to a worker that has exited. The bubble would then
// never end.
type stoppableQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	test context.Context //nolint:containedctx // only its cancellation matters
}

// controllerOptions returns the options of a controller in a bubble. The queue stops when the context test is canceled.
func controllerOptions(test context.Context, workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		NewQueue: func(
			name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return stoppableQueue{
				test: test,
				PriorityQueue: priorityqueue.New(name,
					func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
			}
		},
	}
}

func (q stoppableQueue) stopped() bool { return q.test.Err() != nil }

// Add implements workqueue.TypedInterface.
func (q stoppableQueue) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q stoppableQueue) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	if !q.stopped() {
		q.PriorityQueue.AddWithOpts(o, items...)
	}
}

// Done implements workqueue.TypedInterface. After the end of the test, items stay marked as in progress.
func (q stoppableQueue) Done(item reconcile.Request) {
	if !q.stopped() {
		q.PriorityQueue.Done(item)
	}
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q stoppableQueue) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	if q.stopped() {
		return reconcile.Request{}, 0, true
	}
	return q.PriorityQueue.GetWithPriority()
}

// TestStoppedQueueBlocksNoWorker panics if a queue still offers an item after its bubble should have ended.
func TestStoppedQueueBlocksNoWorker(t *testing.T) {
	for round := range 2000 {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
			q, ok := controllerOptions(ctx, 1).NewQueue("",
				workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()).(priorityqueue.PriorityQueue[reconcile.Request])
			NewWithT(t).Expect(ok).To(BeTrue(), "controllers should recognize the queue as a priority queue")
			for range 4 {
				go work(q)
			}
			synctest.Wait()
			end()
			for n := range 4 {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint(n)}})
			}
			for range round % 20 { // This varies the moment of the shutdown.
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
