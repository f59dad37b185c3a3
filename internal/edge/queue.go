// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"sync/atomic"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A writeQueue admits one writer to a gateway at a time, as VCD does.
type writeQueue struct {
	token   chan struct{}
	writers *atomic.Int64 // writing or waiting
	most    int64         // maximum number of waiting writers
}

func newWriteQueue(maxWaiting int) writeQueue {
	return writeQueue{token: make(chan struct{}, 1), writers: &atomic.Int64{}, most: int64(maxWaiting)}
}

// acquire waits until no other writer is active. If too many writers already wait, it returns [loadbalancer.ErrBusy].
func (q writeQueue) acquire(ctx context.Context) (release func(), err error) {
	if n := q.writers.Add(1); n > q.most+1 {
		q.writers.Add(-1)
		return nil, failed(loadbalancer.ErrBusy, "%d other writers wait for the edge gateway", n-2)
	}
	select {
	case q.token <- struct{}{}:
		return func() {
			<-q.token
			q.writers.Add(-1)
		}, nil
	case <-ctx.Done():
		q.writers.Add(-1)
		return nil, ctx.Err()
	}
}
