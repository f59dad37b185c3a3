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
	// firstStaleSearch is when stale entries are searched for first: most Services were observed by then, so that few
	// entries are unknown.
	firstStaleSearch = 2 * time.Minute
	// staleInterval is the time between two searches after that.
	staleInterval = time.Hour
	// keptDrops bounds what waits to be removed from an entity that cannot be written. The next search finds the rest.
	keptDrops = 1000
)

// Flush writes what is left at the end of the process, if the reporter was started.
func (r *Reporter) Flush(ctx context.Context) error {
	r.mu.Lock()
	started := r.started
	r.mu.Unlock()
	if !started {
		return nil
	}
	return r.write(ctx)
}

// searchStale notes what the entity lists and is gone: a process may have ended before it wrote that. Gateways are only
// read if something is listed that no owner is known to have.
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
	standing, err := r.standing(ctx, kindsOf(doubtful.Drop))
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

// kindsOf returns the kinds of resources, and virtual services, which have addresses. Translated addresses have a rule
// among the resources.
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

// staleDue reports whether a search is due, and schedules the next.
func (r *Reporter) staleDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opts.Clock.Now()
	if r.standing == nil || now.Before(r.next) || now.Before(r.off) {
		return false
	}
	r.next = now.Add(staleInterval)
	return true
}

// unknown returns the resources and addresses that no owner is known to have.
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
