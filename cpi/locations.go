// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

// locations are the locations in the configuration, with the IDs of those that were found.
type locations struct {
	balancer Balancer
	searcher Searcher // nil: the cloud cannot search for the objects of a Service
	defaults service.Defaults

	mu  sync.Mutex
	ids map[string]string // by name
}

// noun returns the term of the cloud for a location.
func (l *locations) noun() string { return l.defaults.Dialect.Names().Noun }

// describe returns the name of a location in messages for users.
func (l *locations) describe(name string) string {
	if name == "" {
		return "the default " + l.noun()
	}
	return l.noun() + " " + name
}

func (l *locations) has(name string) bool { return slices.Contains(l.defaults.Locations, name) }

// known returns the ID of a location that was found before, or an empty string.
func (l *locations) known(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[name]
}

// hasID reports whether a location of the configuration was found with this ID.
func (l *locations) hasID(id string) bool {
	return slices.ContainsFunc(l.defaults.Locations, func(name string) bool { return l.known(name) == id })
}

func (l *locations) put(name, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil {
		l.ids = map[string]string{}
	}
	l.ids[name] = id
}

// find returns the ID of a location. The ID is cached after the first lookup, because load balancers exist there.
func (l *locations) find(ctx context.Context, name string) (string, error) {
	if id := l.known(name); id != "" {
		return id, nil
	}
	id, err := l.balancer.Locate(ctx, name)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", l.describe(name), err)
	}
	l.put(name, id)
	return id, nil
}

// replaced looks up a location again that is no longer visible. It reports whether its name now belongs to another
// location.
func (l *locations) replaced(ctx context.Context, name, old string) bool {
	id, err := l.balancer.Locate(ctx, name)
	if err != nil || id == old {
		return false
	}
	l.put(name, id)
	return true
}

// all returns the IDs of all locations that can be found, and the errors of the others.
func (l *locations) all(ctx context.Context) ([]string, error) {
	return collect(l.defaults.Locations, func(name string) (string, error) { return l.find(ctx, name) })
}

// collect returns the distinct IDs that find returns, and all its errors.
func collect(names []string, find func(string) (string, error)) ([]string, error) {
	var ids []string
	var wrong []error
	for _, name := range names {
		id, err := find(name)
		if err != nil {
			wrong = append(wrong, err)
		} else if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, errors.Join(wrong...)
}

// unresolvedPrefix is the prefix of the entry that is stored in place of an ID if a location in the configuration could
// not be found. The escaped name follows.
const unresolvedPrefix = "?"

// unresolvedName returns the name of a location that could not be found when the entry was stored.
func unresolvedName(stored string) (name string, ok bool) {
	escaped, ok := strings.CutPrefix(stored, unresolvedPrefix)
	if !ok {
		return "", false
	}
	name, err := url.QueryUnescape(escaped)
	return name, err == nil
}

// possible reports whether a text may be the ID of a location, or the entry of a location that could not be found.
func (l *locations) possible(id string) bool {
	_, lost := unresolvedName(id)
	pattern := l.defaults.Dialect.Names().LocationID
	return lost || pattern == nil || pattern.MatchString(id)
}

// configured drops entries of unfound locations that are no longer in the configuration.
func (l *locations) configured(stored []string) []string {
	return slices.DeleteFunc(slices.Clone(stored), func(id string) bool {
		name, ok := unresolvedName(id)
		return ok && !l.has(name)
	})
}

// resolve returns the IDs of recorded locations, or of all locations if none is recorded. It returns an error if one of
// them cannot be found.
func (l *locations) resolve(ctx context.Context, stored []string) ([]string, error) {
	if stored = l.configured(stored); len(stored) == 0 {
		return l.all(ctx)
	}
	return collect(stored, func(id string) (string, error) {
		if name, ok := unresolvedName(id); ok {
			return l.find(ctx, name)
		}
		return id, nil
	})
}

// resolveKnown replaces entries of unfound locations by their IDs if they were found in the meantime. It sends no
// requests to the cloud.
func (l *locations) resolveKnown(stored []string) []string {
	ids, _ := collect(l.configured(stored), func(id string) (string, error) {
		if name, ok := unresolvedName(id); ok {
			return cmp.Or(l.known(name), id), nil
		}
		return id, nil
	})
	return ids
}

// unresolved returns the entries of the locations that could not be found.
func (l *locations) unresolved() []string {
	var out []string
	for _, name := range l.defaults.Locations {
		if l.known(name) == "" {
			out = append(out, unresolvedPrefix+url.QueryEscape(name))
		}
	}
	return out
}
