// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// failureAge is how long a failed snapshot is cached. The node controllers request the machine of every Node that is
// not ready every few seconds. During an outage, each request would cause another read.
const failureAge = 10 * time.Second

// A failureCache caches failures of Snapshot.
type failureCache struct {
	machines Machines
	clock    clock.PassiveClock

	mu     sync.Mutex
	failed failedRead
}

// A failedRead is a failed snapshot with its results.
type failedRead struct {
	until    time.Time // zero: the last read succeeded
	machines []Machine // of an [IncompleteError]
	err      error
}

// Snapshot implements [Machines].
func (r *failureCache) Snapshot(ctx context.Context, maxAge time.Duration) ([]Machine, error) {
	r.mu.Lock()
	last := r.failed
	r.mu.Unlock()
	if r.clock.Now().Before(last.until) {
		return slices.Clone(last.machines), last.err
	}
	all, err := r.machines.Snapshot(ctx, maxAge)
	if ctx.Err() != nil {
		return all, err // The caller gave up, so the error is not the cloud's.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = failedRead{}
	if err != nil {
		r.failed = failedRead{
			until:    r.clock.Now().Add(failureAge),
			machines: all,
			err:      err,
		}
	}
	return all, err
}

// Get implements [Machines].
func (r *failureCache) Get(ctx context.Context, providerID string) (Machine, error) {
	return r.machines.Get(ctx, providerID)
}
