// SPDX-License-Identifier: Apache-2.0

// Package cache remembers what look-ups found, and has those who look for the same at the same time share one call. It does
// not know what it remembers.
package cache

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// A Cache keeps what look-ups found for a while. Failures are not kept: a correction must take effect at once.
type Cache struct {
	ttl    time.Duration
	clock  transport.Clock
	flight singleflight.Group

	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	value any
	found time.Time
}

// New returns an empty cache.
func New(ttl time.Duration, clock transport.Clock) *Cache {
	return &Cache{ttl: ttl, clock: clock, entries: map[string]entry{}}
}

type maxAgeKey struct{}

// WithMaxAge has look-ups in the context ask VCD again for what was found longer ago than that.
func WithMaxAge(ctx context.Context, age time.Duration) context.Context {
	return context.WithValue(ctx, maxAgeKey{}, age)
}

// Get returns what was found for a key, if it is not too old.
func (c *Cache) Get(ctx context.Context, key string) (any, bool) {
	maxAge := c.ttl
	if age, ok := ctx.Value(maxAgeKey{}).(time.Duration); ok {
		maxAge = min(age, c.ttl)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok || c.clock.Now().Sub(e.found) > maxAge {
		delete(c.entries, key)
		return nil, false
	}
	return e.value, true
}

// Put remembers what was found for a key.
func (c *Cache) Put(key string, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[key] = entry{value, c.clock.Now()}
}

// Drop forgets what was found for a key.
func (c *Cache) Drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}

// Clear forgets all.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
}

// Lookup returns what the cache has for key, or finds it: once for all who ask at the same time. It goes on when the
// callers give up, for the next one.
func Lookup[T any](ctx context.Context, c *Cache, key string, find func(context.Context) (T, error)) (T, error) {
	var none T
	if value, ok := c.Get(ctx, key); ok {
		if typed, ok := value.(T); ok {
			return typed, nil
		}
	}
	result := c.flight.DoChan(key, func() (any, error) {
		found, err := find(transport.Shared(context.WithoutCancel(ctx)))
		if err == nil {
			c.Put(key, found)
		}
		return found, err
	})
	select {
	case r := <-result:
		found, _ := r.Val.(T)
		return found, r.Err
	case <-c.clock.After(transport.MaxWait):
		return none, transport.ErrSlow
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Key names a look-up in the cache. Names cannot contain the separator.
func Key(parts ...string) string {
	joined := ""
	for _, part := range parts {
		joined += "\x00" + part
	}
	return joined
}
