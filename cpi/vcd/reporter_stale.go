// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
)

const (
	// firstStaleSearch is the delay of the first search for stale entries. By then, most Services were observed, so few
	// entries are unknown.
	firstStaleSearch = 2 * time.Minute
	// staleInterval is the interval of further searches.
	staleInterval = time.Hour
	// keptDrops limits the entries that wait to be removed from an entity that cannot be written. The next search finds
	// the others.
	keptDrops = 1000
)

// Flush writes the remaining changes before the process exits, if the reporter was started.
func (r *Reporter) Flush(ctx context.Context) error {
	r.mu.Lock()
	started := r.started
	r.mu.Unlock()
	if !started {
		return nil
	}
	return r.write(ctx)
}

// searchStale finds entries of deleted objects: a process may have exited before it wrote the removal. Gateways are
// only read if the entity lists objects of no known owner.
func (r *Reporter) searchStale(ctx context.Context) error {
	if !r.staleDue() {
		return nil
	}
	session, err := r.opts.Session(ctx)
	if err != nil {
		return err
	}
	entity, err := session.Entities.Get(ctx, r.opts.ID)
	if err != nil {
		return err
	}
	resources, addresses := rde.Listed(entity.Type, entity.Content)
	doubtful := r.unknown(resources, addresses)
	if len(doubtful.Drop)+len(doubtful.DropIPs) == 0 {
		return nil
	}
	standing, err := r.existing(ctx, kindsOf(doubtful.Drop))
	if err != nil {
		return err
	}
	seen := resourcesOf(standing)
	resources = slices.DeleteFunc(doubtful.Drop, func(r rde.Resource) bool { return contains(seen, r) })
	addresses = slices.DeleteFunc(doubtful.DropIPs, func(a string) bool {
		return slices.ContainsFunc(standing,
			func(o loadbalancer.Object) bool { return slices.Contains(addressesOf(o.Addresses), a) })
	})
	if gone := r.unknown(resources, addresses); len(gone.Drop)+len(gone.DropIPs) > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(gone)
	}
	return nil
}

// kindsOf returns the kinds of the resources, and always virtual services, because they have the addresses. Translated
// addresses have a rule among the resources.
func kindsOf(resources []rde.Resource) []loadbalancer.Kind {
	kinds := []loadbalancer.Kind{lb.KindService}
	for kind, name := range resourceTypes {
		if kind != lb.KindService &&
			slices.ContainsFunc(resources, func(r rde.Resource) bool { return r.Type == name }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// staleDue reports whether a search is due, and schedules the next one.
func (r *Reporter) staleDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opts.Clock.Now()
	if r.existing == nil || now.Before(r.next) || now.Before(r.off) {
		return false
	}
	r.next = now.Add(staleInterval)
	return true
}

// unknown returns the resources and addresses that belong to no known owner.
func (r *Reporter) unknown(resources []rde.Resource, addresses []string) rde.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := func(resource rde.Resource) bool {
		for _, o := range r.owners {
			if contains(o.resources, resource) {
				return true
			}
		}
		return false
	}
	return rde.Change{
		Drop:    slices.DeleteFunc(slices.Clone(resources), known),
		DropIPs: slices.DeleteFunc(slices.Clone(addresses), r.inUse),
	}
}
