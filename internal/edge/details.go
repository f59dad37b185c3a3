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
	// rounds is in how many portions all pools and IP sets of a cluster are read in full.
	rounds = 60
	// hintAge is how long a pool that was read in full is believed, as long as lists hint at the same.
	hintAge = 10 * time.Minute
	// unknownMembers is how many members a pool has that was not listed since they changed.
	unknownMembers = -1
)

// details are pools and IP sets that were read in full: lists do not show their members.
type details struct {
	opts Options

	mu     sync.Mutex
	pools  map[string]readPool
	sets   map[string]readSet
	hinted map[string]lb.Hints // what lists hinted at when a portion was last read
	rolled time.Time           // when that was
	next   int                 // where the next portion begins
}

// A readPool is a pool that was read in full, with what lists hinted at then.
type readPool struct {
	pool  lb.Pool
	hints lb.Hints
	at    time.Time
}

type readSet struct {
	set lb.Set
	at  time.Time
}

func newDetails(opts Options) details {
	return details{opts: opts, pools: map[string]readPool{}, sets: map[string]readSet{}}
}

// forget drops what was read of an object that is being written.
func (d *details) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pools, id)
	delete(d.hinted, id)
	delete(d.sets, id)
}

// pool adds to a listed pool what was just read of it in full.
func (d *details) pool(p lb.Pool) lb.Pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.pools[p.ID]; ok && !p.Full && d.opts.Clock.Now().Sub(known.at) <= d.opts.MaxAge {
		return known.as(p)
	}
	return p
}

// believed adds to a listed pool what was read of it in full not long ago, when lists hinted at the same.
func (d *details) believed(p lb.Pool) (lb.Pool, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.pools[p.ID]
	if !ok || p.Hints == nil || known.hints != *p.Hints || d.opts.Clock.Now().Sub(known.at) > hintAge {
		return p, false
	}
	return known.as(p), true
}

// as is the pool as listed, with what was read in full.
func (r readPool) as(listed lb.Pool) lb.Pool {
	full := r.pool
	full.Object = listed.Object
	full.Hints = listed.Hints
	return full
}

// set adds to a listed IP set what was read of it in full within an age.
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
		g.pools.invalidate() // it may be gone
		return lb.Pool{}, err
	}
	known := readPool{pool: fullPool(p), at: now}
	for _, row := range g.pools.known() {
		if row.ID == id {
			known.hints = *row.Hints
		}
	}
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

// fullPools reads the owner's pools in full.
func (o *observation) fullPools(ctx context.Context) error {
	for i, p := range o.out.Pools {
		if p.Full && !o.query.Fresh {
			continue
		}
		if known, ok := o.gateway.details.believed(p); ok && !o.query.Fresh {
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
		o.out.Sets[i] = o.gateway.details.set(s, hintAge) // read just now
	}
	return nil
}

// roll reads the next portion of the cluster's pools and sets in full: lists do not show a change of members or
// monitors. What was found is used as long as the lists are. A pool that cannot be read is left for later: it may
// just have gone.
func (o *observation) roll(ctx context.Context) error {
	g := o.gateway
	for _, x := range g.due(o.query.Owner.Cluster) {
		var err error
		if x.set {
			err = g.readSet(ctx, o.session, x.id)
		} else {
			_, err = g.readPool(ctx, o.session, x.id)
		}
		if err != nil && !errors.Is(err, vcd.ErrForbidden) && !errors.Is(err, vcd.ErrNotFound) {
			return err
		}
	}
	for i, p := range o.out.Pools {
		o.out.Pools[i] = g.details.pool(p)
	}
	for i, s := range o.out.Sets {
		o.out.Sets[i] = g.details.set(s, hintAge)
	}
	return nil
}

// A member is a pool or set of a portion.
type member struct {
	id  string
	set bool
}

// due returns what is to be read in full now, if it is time.
func (g *gateway) due(cluster string) []member {
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
			all = append(all, member{s.ID, true})
		}
	}
	return g.details.portion(pools, all)
}

// portion returns what is to be read in full, if it is time: first what lists hint at otherwise than before.
func (d *details) portion(pools []lb.Pool, all []member) []member {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opts.Clock.Now()
	if len(all) == 0 || !d.rolled.IsZero() && now.Sub(d.rolled) < d.opts.RollEvery {
		return nil
	}
	first := d.rolled.IsZero() // what was just written, or found after a start, need not be read at once
	d.rolled = now
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

// changed returns pools that lists hint at otherwise than when they were last seen, no more than a portion; the
// others come next time. The lock is held.
func (d *details) changed(pools []lb.Pool) []member {
	var out []member
	seen := make(map[string]lb.Hints, len(pools))
	for _, p := range pools {
		before, known := d.hinted[p.ID]
		switch {
		case p.Hints.Members == unknownMembers: // written by us
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
