// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// perService stores a value per Service.
type perService[T any] struct {
	mu  sync.Mutex
	all map[types.UID]T
}

func (p *perService[T]) view(uid types.UID, f func(T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.all[uid])
}

func (p *perService[T]) get(uid types.UID) (value T) {
	p.view(uid, func(v T) { value = v })
	return value
}

func (p *perService[T]) change(uid types.UID, f func(*T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[types.UID]T{}
	}
	value := p.all[uid]
	f(&value)
	p.all[uid] = value
}

// keep drops the values of all Services except those.
func (p *perService[T]) keep(those map[types.UID]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.all, func(uid types.UID, _ T) bool { return !those[uid] })
}

func (p *perService[T]) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, uid)
}

// A serviceState is the state of a Service that caches may not show yet.
type serviceState struct {
	olderRead   bool               // the annotations of older builds were removed
	provisioned bool               // its load balancer matched the Service at least once
	location    string             // of the last plan
	uses        []loadbalancer.Use // of the last plan, if they do not exist yet
	refusal     refusal            // of a step
	members     memberState
	// sharedRetryAt is when the removal of objects that locations share is retried, while a location cannot be left.
	sharedRetryAt time.Time
	// leaveBackoffs contains the backoff of locations that could not be left, by ID. The map is replaced, never
	// modified.
	leaveBackoffs map[string]backoff
	// foreignLocations are the locations that another process stored on a Service of another class without objects of
	// this process.
	foreignLocations string
}

// A refusal is the backoff after a refused step, because each retry may create objects and remove them again. It lasts
// while the request is the same.
type refusal struct {
	backoff

	request [sha256.Size]byte
}

// A backoff is the time of the next retry.
type backoff struct {
	until time.Time
	pause time.Duration
}

// next returns a longer backoff that starts now.
func (b backoff) next(now time.Time) backoff {
	pause := min(max(2*b.pause, later), maxRefusalBackoff)
	return backoff{now.Add(pause), pause}
}

// maxRefusalBackoff is the longest pause before a refused step is retried.
const maxRefusalBackoff = 10 * time.Minute
