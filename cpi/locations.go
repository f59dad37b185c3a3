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

// locations are those of the configuration, with the ids of those that were found.
type locations struct {
	balancer Balancer
	searcher Searcher // nil: the cloud cannot tell where a Service has something
	defaults service.Defaults

	mu  sync.Mutex
	ids map[string]string // by name
}

// noun returns the cloud's word for a location.
func (l *locations) noun() string { return l.defaults.Dialect.Names().Noun }

// describe returns the name of a location for users.
func (l *locations) describe(name string) string {
	if name == "" {
		return "the default " + l.noun()
	}
	return l.noun() + " " + name
}

func (l *locations) has(name string) bool { return slices.Contains(l.defaults.Locations, name) }

// known returns the id of a location that was found before.
func (l *locations) known(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[name]
}

// hasID reports whether a location of the configuration was found under an id.
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

// find returns the id of a location. Once found it stays: load balancers are there.
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

// replaced searches again for a location that cannot be seen any more, and reports whether its name is another one's
// now.
func (l *locations) replaced(ctx context.Context, name, old string) bool {
	id, err := l.balancer.Locate(ctx, name)
	if err != nil || id == old {
		return false
	}
	l.put(name, id)
	return true
}

// all returns the ids of all locations that can be found, and why others cannot.
func (l *locations) all(ctx context.Context) ([]string, error) {
	return collect(l.defaults.Locations, func(name string) (string, error) { return l.find(ctx, name) })
}

// collect returns the ids that find returns, each once, and all its errors.
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

// unfound begins what is stored, instead of its id, of a configured location that could not be found then; its name
// follows.
const unfound = "?"

// unfoundName returns the name of a location that could not be found when it was stored.
func unfoundName(stored string) (name string, ok bool) {
	escaped, ok := strings.CutPrefix(stored, unfound)
	if !ok {
		return "", false
	}
	name, err := url.QueryUnescape(escaped)
	return name, err == nil
}

// possible reports whether a text may be the id of a location, or stand for one that could not be found.
func (l *locations) possible(id string) bool {
	_, lost := unfoundName(id)
	pattern := l.defaults.Dialect.Names().LocationID
	return lost || pattern == nil || pattern.MatchString(id)
}

// configured drops unfound locations that the configuration does not name any more.
func (l *locations) configured(stored []string) []string {
	return slices.DeleteFunc(slices.Clone(stored), func(id string) bool {
		name, ok := unfoundName(id)
		return ok && !l.has(name)
	})
}

// resolve returns the ids of stored locations; all, if none is stored. It is an error if one of them cannot be found.
func (l *locations) resolve(ctx context.Context, stored []string) ([]string, error) {
	if stored = l.configured(stored); len(stored) == 0 {
		return l.all(ctx)
	}
	return collect(stored, func(id string) (string, error) {
		if name, ok := unfoundName(id); ok {
			return l.find(ctx, name)
		}
		return id, nil
	})
}

// resolveKnown replaces unfound locations by their ids as far as they were found meanwhile. It asks nothing of the
// cloud.
func (l *locations) resolveKnown(stored []string) []string {
	ids, _ := collect(l.configured(stored), func(id string) (string, error) {
		if name, ok := unfoundName(id); ok {
			return cmp.Or(l.known(name), id), nil
		}
		return id, nil
	})
	return ids
}

// unfound returns what is stored of the locations that could not be found.
func (l *locations) unfound() []string {
	var out []string
	for _, name := range l.defaults.Locations {
		if l.known(name) == "" {
			out = append(out, unfound+url.QueryEscape(name))
		}
	}
	return out
}
