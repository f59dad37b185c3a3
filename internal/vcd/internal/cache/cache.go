// SPDX-License-Identifier: Apache-2.0

// Package cache stores the results of lookups, and lets concurrent lookups of the same key share one call. It is
// independent of the meaning of the results.
package cache

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// A Cache stores the results of lookups for a limited time. It does not store failures, because a correction must take
// effect immediately.
type Cache struct {
	ttl    time.Duration
	site   *transport.Site
	flight singleflight.Group

	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	value any
	found time.Time
}

// New returns an empty cache for lookups at a site.
func New(ttl time.Duration, site *transport.Site) *Cache {
	return &Cache{ttl: ttl, site: site, entries: map[string]entry{}}
}

type maxAgeKey struct{}

// WithMaxAge makes lookups in the context ignore entries that are older than age.
func WithMaxAge(ctx context.Context, age time.Duration) context.Context {
	return context.WithValue(ctx, maxAgeKey{}, age)
}

// Get returns the entry of a key, if it has not expired.
func (c *Cache) Get(ctx context.Context, key string) (any, bool) {
	maxAge := c.ttl
	if age, ok := ctx.Value(maxAgeKey{}).(time.Duration); ok {
		maxAge = min(age, c.ttl)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok || c.site.Clock.Now().Sub(e.found) > maxAge {
		delete(c.entries, key)
		return nil, false
	}
	return e.value, true
}

// Put stores the entry of a key.
func (c *Cache) Put(key string, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[key] = entry{value, c.site.Clock.Now()}
}

// Drop removes the entry of a key.
func (c *Cache) Drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}

// Clear removes all entries.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
}

// Lookup returns the cached entry of key or calls find. Concurrent lookups of the same key share one call of find,
// which continues for the next lookup if its callers give up: see [transport.Site.WaitedTooLong].
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
	case <-c.site.Clock.After(transport.MaxWait):
		return none, c.site.WaitedTooLong(ctx)
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Key returns the cache key of a lookup. Its separator is a character that names cannot contain.
func Key(parts ...string) string {
	joined := ""
	for _, part := range parts {
		joined += "\x00" + part
	}
	return joined
}
