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

// perService keeps a value for each Service.
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

// keep drops the values of all Services but those.
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

// A serviceState is what caches may not show yet of a Service.
type serviceState struct {
	olderRead bool               // annotations of older builds were removed
	made      bool               // its load balancer was as desired
	location  string             // of the last plan
	uses      []loadbalancer.Use // of the last plan, as far as they do not stand yet
	refusal   refusal            // of a step
	// shared is when what locations share is removed again, while one of them cannot be left.
	shared time.Time
	// unleft is when locations that could not be left are tried again, by id. The map is replaced, never changed.
	unleft map[string]backoff
	// theirs is what another process has stored of locations, on a Service of another class that has nothing here.
	theirs string
}

// A refusal is of a step: each try may build something, and remove it again. As long as the wish is the same, tries
// back off.
type refusal struct {
	backoff

	wish [sha256.Size]byte
}

// A backoff is when something that failed is tried again.
type backoff struct {
	until time.Time
	pause time.Duration
}

// next returns a longer backoff, from now on.
func (b backoff) next(now time.Time) backoff {
	pause := min(max(2*b.pause, later), maxRefusalBackoff)
	return backoff{now.Add(pause), pause}
}

// maxRefusalBackoff is the longest pause before a step that was refused is tried again.
const maxRefusalBackoff = 10 * time.Minute
