// SPDX-License-Identifier: Apache-2.0

// Package refused remembers what a cloud refuses although its lists offer it, such as an address in quarantine. Without
// it, the same choice is made and refused again for ever.
package refused

import (
	"sync"
	"time"
)

// Options are what a [Set] is made of.
type Options struct {
	// Now returns the time; nil: the real one.
	Now func() time.Time
	// Age is how long a refusal counts: most refusals end.
	Age time.Duration
	// Most is how many refusals are kept. A further one replaces the oldest.
	Most int
}

// A Set has the values whose refusal counts. It may be used concurrently.
type Set[T comparable] struct {
	opts Options

	mu  sync.Mutex
	all []refusal[T] // the oldest first
}

type refusal[T comparable] struct {
	value T
	at    time.Time
}

// New returns an empty set.
func New[T comparable](o Options) *Set[T] {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Set[T]{opts: o}
}

// Add notes that a value is refused.
func (s *Set[T]) Add(value T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.drop(value), refusal[T]{value, s.opts.Now()})
	s.all = s.all[max(0, len(s.all)-s.opts.Most):]
}

// Has reports whether the refusal of a value counts.
func (s *Set[T]) Has(value T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all {
		if r.value == value {
			return s.counts(r)
		}
	}
	return false
}

// Full reports whether as many refusals count as are kept: there may be many more.
func (s *Set[T]) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) >= s.opts.Most && s.counts(s.all[0])
}

// counts reports whether a refusal is not too old. The lock is held.
func (s *Set[T]) counts(r refusal[T]) bool { return s.opts.Now().Sub(r.at) < s.opts.Age }

// drop returns the refusals that count, without that of a value. The lock is held.
func (s *Set[T]) drop(value T) []refusal[T] {
	var out []refusal[T]
	for _, r := range s.all {
		if r.value != value && s.counts(r) {
			out = append(out, r)
		}
	}
	return out
}
