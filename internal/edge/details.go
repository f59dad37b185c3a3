// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// rounds is the number of portions in which all pools and IP sets of a cluster are read in full.
	rounds = 60
	// hintAge is how long the full content of a pool is cached, while lists show the same hints.
	hintAge = 10 * time.Minute
	// unknownMembers is the number of members of a pool that was not listed since they changed.
	unknownMembers = -1
)

// details caches pools and IP sets that were read in full, because lists do not show their members.
type details struct {
	opts Options

	mu          sync.Mutex
	pools       map[string]readPool
	monitors    map[string]string // URNs of health monitors with their own settings, by pool; perhaps outdated
	sets        map[string]readSet
	httpRules   map[string]readHTTPRules
	hinted      map[string]lb.Hints // hints when the last portion was read
	lastPortion time.Time           // time of that read
	next        int                 // start of the next portion
}

// A readPool is a pool that was read in full, with the hints in the lists at that time.
type readPool struct {
	pool  lb.Pool
	hints lb.Hints
	at    time.Time
}

// readHTTPRules are the rules of a virtual service that were read.
type readHTTPRules struct {
	rules vcd.HTTPRules
	at    time.Time
}

type readSet struct {
	set lb.Set
	at  time.Time
}

func newDetails(opts Options) details {
	return details{
		opts:      opts,
		pools:     map[string]readPool{},
		monitors:  map[string]string{},
		sets:      map[string]readSet{},
		httpRules: map[string]readHTTPRules{},
	}
}

// forget drops the cached content of an object that is being written.
func (d *details) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pools, id)
	delete(d.hinted, id)
	delete(d.sets, id)
	delete(d.httpRules, id)
}

// monitor returns the URN of the health monitor with which a pool was last read or written; empty if there was none.
func (d *details) monitor(pool string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.monitors[pool]
}

// keepMonitor caches the URN of the health monitor of a pool. An empty URN means that it has none.
func (d *details) keepMonitor(pool, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id == "" {
		delete(d.monitors, pool)
		return
	}
	d.monitors[pool] = id
}

// pool adds the cached content to a listed pool, if it was read within MaxAge.
func (d *details) pool(p lb.Pool) lb.Pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.pools[p.ID]; ok && !p.Full && d.opts.Clock.Now().Sub(known.at) <= d.opts.MaxAge {
		return known.as(p)
	}
	return p
}

// cachedIfUnchanged adds the cached content to a listed pool, if it was read recently with the same hints.
func (d *details) cachedIfUnchanged(p lb.Pool) (lb.Pool, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.pools[p.ID]
	if !ok || p.Hints == nil || known.hints != *p.Hints || d.opts.Clock.Now().Sub(known.at) > hintAge {
		return p, false
	}
	return known.as(p), true
}

// as returns the listed pool with its cached content.
func (r readPool) as(listed lb.Pool) lb.Pool {
	full := r.pool
	full.Object = listed.Object
	full.Hints = listed.Hints
	return full
}

// set adds the cached content to a listed IP set, if it was read within the given age.
func (d *details) set(s lb.Set, age time.Duration) lb.Set {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.sets[s.ID]
	if !ok || s.Full {
		return s
	}
	if d.opts.Clock.Now().Sub(known.at) > age {
		delete(d.sets, s.ID)
		return s
	}
	full := known.set
	full.Object = s.Object
	full.Generation = s.Generation
	return full
}

// readPool reads a pool in full.
func (g *gateway) readPool(ctx context.Context, s *vcd.Session, id string) (lb.Pool, error) {
	now := g.driver.opts.Clock.Now()
	p, err := s.Balancers.Pool(ctx, id)
	if err != nil {
		g.pools.invalidate() // it may have been deleted
		return lb.Pool{}, err
	}
	known := readPool{pool: fullPool(p), at: now}
	monitor := ownMonitor(p)
	if known.pool.Check, err = readCheck(ctx, s, monitor); err != nil {
		return lb.Pool{}, err
	}
	for _, row := range g.pools.known() {
		if row.ID == id {
			known.hints = *row.Hints
		}
	}
	g.details.keepMonitor(id, monitor)
	g.details.mu.Lock()
	defer g.details.mu.Unlock()
	g.details.pools[id] = known
	return known.pool, nil
}

// readSet reads an IP set in full.
func (g *gateway) readSet(ctx context.Context, s *vcd.Session, id string) error {
	now := g.driver.opts.Clock.Now()
	set, err := s.Firewall.IPSet(ctx, id)
	if err != nil {
		g.sets.invalidate()
		return err
	}
	g.details.mu.Lock()
	defer g.details.mu.Unlock()
	g.details.sets[id] = readSet{fullSet(set), now}
	return nil
}

// service adds the cached rules to a listed virtual service, if they were read recently.
func (d *details) service(vs lb.VirtualService) lb.VirtualService {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.httpRules[vs.ID]; ok && d.opts.Clock.Now().Sub(known.at) <= hintAge {
		vs.Rules = rulesOf(known.rules, vs.Application)
		vs.RulesRead = true
	}
	return vs
}

// readHTTPRules reads the rules of a virtual service.
func (g *gateway) readHTTPRules(ctx context.Context, s *vcd.Session, id string) error {
	now := g.driver.opts.Clock.Now()
	rules, err := s.Balancers.HTTPRules(ctx, id)
	if err != nil {
		return err
	}
	g.details.mu.Lock()
	defer g.details.mu.Unlock()
	g.details.httpRules[id] = readHTTPRules{rules, now}
	return nil
}

// fullPools reads the owner's pools in full.
func (o *observation) fullPools(ctx context.Context) error {
	for i, p := range o.out.Pools {
		if p.Full && !o.query.Fresh {
			continue
		}
		if known, ok := o.gateway.details.cachedIfUnchanged(p); ok && !o.query.Fresh {
			o.out.Pools[i] = known
			continue
		}
		full, err := o.gateway.readPool(ctx, o.session, p.ID)
		if err != nil {
			return err
		}
		o.out.Pools[i] = full
	}
	return nil
}

// fullSets reads the cluster's IP sets in full.
func (o *observation) fullSets(ctx context.Context) error {
	for i, s := range o.out.Sets {
		if s.Full && !o.query.Fresh {
			continue
		}
		if err := o.gateway.readSet(ctx, o.session, s.ID); err != nil {
			return err
		}
		s.Full = false
		o.out.Sets[i] = o.gateway.details.set(s, hintAge) // just read
	}
	return nil
}

// readPortion reads the next portion of the cluster's pools and sets in full, because lists do not show changes of
// members or monitors. The result is cached as long as the lists. A pool that cannot be read is skipped, because it may
// just have been deleted.
func (o *observation) readPortion(ctx context.Context) error {
	g := o.gateway
	for _, x := range g.duePortion(o.query.Owner.Cluster) {
		var err error
		switch {
		case x.set:
			err = g.readSet(ctx, o.session, x.id)
		case x.service:
			err = g.readHTTPRules(ctx, o.session, x.id)
		default:
			_, err = g.readPool(ctx, o.session, x.id)
		}
		if err != nil && !errors.Is(err, vcd.ErrForbidden) && !errors.Is(err, vcd.ErrNotFound) {
			return err
		}
	}
	for i, vs := range o.out.Services {
		o.out.Services[i] = g.details.service(vs)
	}
	for i, p := range o.out.Pools {
		o.out.Pools[i] = g.details.pool(p)
	}
	for i, s := range o.out.Sets {
		o.out.Sets[i] = g.details.set(s, hintAge)
	}
	return nil
}

// A member is a pool, a set or the rules of a virtual service in a portion.
type member struct {
	id      string
	set     bool
	service bool
}

// duePortion returns the objects to read in full now, if a portion is due.
func (g *gateway) duePortion(cluster string) []member {
	var pools []lb.Pool
	var all []member
	for _, p := range g.pools.known() {
		if _, origin := lb.OwnerOf(cluster, lb.KindPool, p.Name, p.Description); origin == lb.Marked {
			pools = append(pools, p)
			all = append(all, member{id: p.ID})
		}
	}
	for _, s := range g.sets.known() {
		if m, origin := lb.OwnerOf(cluster, lb.KindSet, s.Name, s.Description); origin == lb.Marked && m.For(g.id) {
			all = append(all, member{id: s.ID, set: true})
		}
	}
	for _, vs := range g.services.known() {
		if m, origin := lb.OwnerOf(cluster, lb.KindService, vs.Name, vs.Description); origin == lb.Marked && m.Wrote != "" {
			all = append(all, member{id: vs.ID, service: true})
		}
	}
	return g.details.portion(pools, all)
}

// portion returns the next objects to read in full, if a portion is due. Pools with changed hints come first.
func (d *details) portion(pools []lb.Pool, all []member) []member {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opts.Clock.Now()
	if len(all) == 0 || !d.lastPortion.IsZero() && now.Sub(d.lastPortion) < d.opts.RollEvery {
		return nil
	}
	first := d.lastPortion.IsZero() // new or recently written objects need not be read at once
	d.lastPortion = now
	maps.DeleteFunc(d.pools, func(_ string, known readPool) bool { return now.Sub(known.at) > hintAge })
	out := d.changed(pools)
	if first {
		return nil
	}
	for most := (len(all) + rounds - 1) / rounds; len(out) < most; d.next++ {
		out = append(out, all[d.next%len(all)])
	}
	return out
}

// changed returns pools whose hints changed since they were last seen, at most one portion of them. The others follow
// next time. The caller holds the lock.
func (d *details) changed(pools []lb.Pool) []member {
	var out []member
	seen := make(map[string]lb.Hints, len(pools))
	for _, p := range pools {
		before, known := d.hinted[p.ID]
		switch {
		case p.Hints.Members == unknownMembers: // written by this process
		case !known || *p.Hints == before:
			seen[p.ID] = *p.Hints
		case len(out) < (len(pools)+rounds-1)/rounds:
			out = append(out, member{id: p.ID})
			seen[p.ID] = *p.Hints
		default:
			seen[p.ID] = before
		}
	}
	d.hinted = seen
	return out
}
