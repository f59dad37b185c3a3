// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A fairQueue limits the number of concurrent callers per key. Further callers wait in order of arrival. The zero value
// admits one caller per key.
type fairQueue struct {
	slots int // per key

	mu   sync.Mutex
	keys map[string]*slots
}

// slots are the slots of one key.
type slots struct {
	taken chan struct{}
	users int // callers that hold or wait for a slot
}

func (q *fairQueue) join(key string) *slots {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.keys == nil {
		q.keys = map[string]*slots{}
	}
	if q.keys[key] == nil {
		q.keys[key] = &slots{taken: make(chan struct{}, max(q.slots, 1))}
	}
	q.keys[key].users++
	return q.keys[key]
}

func (q *fairQueue) leave(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.keys[key].users--; q.keys[key].users == 0 {
		delete(q.keys, key)
	}
}

// wait waits for a slot until ctx ends or the deadline expires ([loadbalancer.ErrBusy]). A nil deadline never expires.
// The returned function frees the slot.
func (q *fairQueue) wait(ctx context.Context, key string, deadline <-chan time.Time) (func(), error) {
	s := q.join(key)
	select {
	case s.taken <- struct{}{}:
		return q.free(key, s), nil
	case <-deadline:
		q.leave(key)
		return nil, loadbalancer.ErrBusy
	case <-ctx.Done():
		q.leave(key)
		return nil, ctx.Err()
	}
}

// try returns a function that frees the slot, or false if no slot is free.
func (q *fairQueue) try(key string) (func(), bool) {
	s := q.join(key)
	select {
	case s.taken <- struct{}{}:
		return q.free(key, s), true
	default:
		q.leave(key)
		return nil, false
	}
}

// inUse reports whether any caller holds or waits for a slot.
func (q *fairQueue) inUse(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.keys[key] != nil
}

func (q *fairQueue) free(key string, s *slots) func() {
	return func() {
		<-s.taken
		q.leave(key)
	}
}
