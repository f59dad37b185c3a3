package cpi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// keyed are locks by name.
type keyed struct {
	mu    sync.Mutex
	locks map[string]*queue
}

// A queue is whoever has a lock, or waits for it.
type queue struct {
	token chan struct{}
	users int
}

func (k *keyed) join(key string) *queue {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locks == nil {
		k.locks = map[string]*queue{}
	}
	q, ok := k.locks[key]
	if !ok {
		q = &queue{token: make(chan struct{}, 1)}
		k.locks[key] = q
	}
	q.users++
	return q
}

func (k *keyed) leave(key string, q *queue) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(k.locks, key)
	}
}

func (k *keyed) unlock(key string, q *queue) func() {
	return func() {
		<-q.token
		k.leave(key, q)
	}
}

// lock waits for a lock, until ctx ends, and returns what gives it back.
func (k *keyed) lock(ctx context.Context, key string) (func(), error) {
	q := k.join(key)
	select {
	case q.token <- struct{}{}:
		return k.unlock(key, q), nil
	case <-ctx.Done():
		k.leave(key, q)
		return nil, ctx.Err()
	}
}

// try takes a lock if nobody has it.
func (k *keyed) try(key string) (func(), bool) {
	q := k.join(key)
	select {
	case q.token <- struct{}{}:
		return k.unlock(key, q), true
	default:
		k.leave(key, q)
		return nil, false
	}
}

// turns lets so many work at each place at once.
type turns struct {
	most  int
	clock clock.Clock

	mu     sync.Mutex
	places map[string]chan struct{}
}

func (t *turns) at(place string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places == nil {
		t.places = map[string]chan struct{}{}
	}
	if t.places[place] == nil {
		t.places[place] = make(chan struct{}, t.most)
	}
	return t.places[place]
}

// try takes a turn if there is one.
func (t *turns) try(place string) (func(), bool) {
	c := t.at(place)
	select {
	case c <- struct{}{}:
		return func() { <-c }, true
	default:
		return nil, false
	}
}

// wait takes a turn, and waits for it a while.
func (t *turns) wait(ctx context.Context, place string, patience time.Duration) (func(), error) {
	c := t.at(place)
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	default:
	}
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-t.clock.After(patience):
		return nil, fmt.Errorf("other load balancers at %s are worked on: %w", place, lb.ErrBusy)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
