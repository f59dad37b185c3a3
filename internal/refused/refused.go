// SPDX-License-Identifier: Apache-2.0

// Package refused stores values that a cloud rejects although its lists offer them, such as an address in quarantine.
// Without it, the same value would be chosen and rejected forever.
package refused

import (
	"sync"
	"time"
)

// Options configure a [Set].
type Options struct {
	// Now returns the current time. If it is nil, [time.Now] is used.
	Now func() time.Time
	// Age is how long a refusal is valid, because most refusals are temporary.
	Age time.Duration
	// Most is the maximum number of refusals in the set. An additional one replaces the oldest.
	Most int
}

// A Set stores values with a valid refusal. It is safe for concurrent use.
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

// Add records that a value was refused.
func (s *Set[T]) Add(value T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.drop(value), refusal[T]{value, s.opts.Now()})
	s.all = s.all[max(0, len(s.all)-s.opts.Most):]
}

// Has reports whether a value has a valid refusal.
func (s *Set[T]) Has(value T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all {
		if r.value == value {
			return s.valid(r)
		}
	}
	return false
}

// Full reports whether the set contains the maximum number of valid refusals. There may then be many more refused
// values.
func (s *Set[T]) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) >= s.opts.Most && s.valid(s.all[0])
}

// valid reports whether a refusal has not expired. The caller holds the lock.
func (s *Set[T]) valid(r refusal[T]) bool { return s.opts.Now().Sub(r.at) < s.opts.Age }

// drop returns the valid refusals without the one of a value. The caller holds the lock.
func (s *Set[T]) drop(value T) []refusal[T] {
	var out []refusal[T]
	for _, r := range s.all {
		if r.value != value && s.valid(r) {
			out = append(out, r)
		}
	}
	return out
}
