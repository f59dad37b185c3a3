package edge

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// rounds is in how many turns all pools and IP sets of a cluster are read in full.
const rounds = 60

// hintAge is how long what was found behind hints is believed, as long as they stay the same.
const hintAge = 10 * time.Minute

// poolAsKnown is a pool of a list, with what was just read of it in full.
func (g *gateway) poolAsKnown(p vcd.PoolSummary) lb.Pool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.withFull(poolOf(p))
}

// withFull adds to a pool what was read of it in full, if that is new enough. The lock is held.
func (g *gateway) withFull(p lb.Pool) lb.Pool {
	if known, ok := g.pooled[p.ID]; ok && !p.Full && g.isNew(known.at) {
		return known.of(p)
	}
	return p
}

// believed is a pool with what was read of it in full not long ago, when lists hinted at the same: to read it again for hints
// would find the same again.
func (g *gateway) believed(p lb.Pool) (lb.Pool, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.pooled[p.ID]
	if !ok || p.Hints == nil || known.hints != *p.Hints || g.driver.opts.Clock.Now().Sub(known.at) > hintAge {
		return p, false
	}
	return known.of(p), true
}

// of is the pool of a list with what was read in full.
func (r readPool) of(p lb.Pool) lb.Pool {
	full := r.value
	full.Object, full.Enabled, full.Services, full.Health, full.Hints = p.Object, p.Enabled, p.Services, p.Health, p.Hints
	return full
}

func (g *gateway) setAsKnown(s vcd.IPSet) lb.Set {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := setOf(s)
	if known, ok := g.setRead[s.ID]; ok && g.isNew(known.at) {
		full := known.value
		full.Object = out.Object
		return full
	}
	delete(g.setRead, s.ID)
	return out
}

// isNew says whether what was read at a time is new enough.
func (g *gateway) isNew(at time.Time) bool {
	return g.driver.opts.Clock.Now().Sub(at) <= g.driver.opts.MaxAge
}

// fullPools reads the owner's pools in full.
func (l *look) fullPools(ctx context.Context) error {
	for i, p := range l.out.Pools {
		if p.Full && !l.query.Fresh {
			continue
		}
		if known, ok := l.gateway.believed(p); ok && !l.query.Fresh {
			l.out.Pools[i] = known
			continue
		}
		full, err := l.gateway.readPool(ctx, l.session, p.ID)
		if err != nil {
			return err
		}
		l.out.Pools[i] = full
	}
	return nil
}

// fullSets reads the cluster's IP sets in full.
func (l *look) fullSets(ctx context.Context) error {
	for i, s := range l.out.Sets {
		if s.Full && !l.query.Fresh {
			continue
		}
		if err := l.gateway.readSet(ctx, l.session, s.ID); err != nil {
			return err
		}
		s.Full = false
		l.out.Sets[i] = l.gateway.fullerSet(s)
	}
	return nil
}

func (g *gateway) readPool(ctx context.Context, s *vcd.Session, id string) (lb.Pool, error) {
	now := g.driver.opts.Clock.Now()
	p, err := s.Balancers.ServerPool(ctx, id)
	if err != nil {
		g.pools.invalidate() // it may be gone
		return lb.Pool{}, err
	}
	known := readPool{read: read[lb.Pool]{fullPool(p), now}}
	for _, row := range g.pools.known() {
		if row.ID == id {
			known.hints = *poolOf(row).Hints
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pooled[id] = known
	return known.value, nil
}

func (g *gateway) readSet(ctx context.Context, s *vcd.Session, id string) error {
	now := g.driver.opts.Clock.Now()
	set, err := s.Firewall.IPSet(ctx, id)
	if err != nil {
		g.sets.invalidate()
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.setRead[id] = read[lb.Set]{fullSet(set), now}
	return nil
}

// forget drops what was read in full of an object that is being written.
func (g *gateway) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pooled, id)
	delete(g.hinted, id)
	delete(g.setRead, id)
}

// roll reads some of the cluster's pools and sets in full, in turn: lists do not show it if somebody changes members or monitors.
// What was found is served as long as the lists are. A pool that cannot be read is left for the next turn: it may just have gone.
func (l *look) roll(ctx context.Context) error {
	for _, turn := range l.gateway.due(l.query.Owner.Cluster) {
		var err error
		if turn.set {
			err = l.gateway.readSet(ctx, l.session, turn.id)
		} else {
			_, err = l.gateway.readPool(ctx, l.session, turn.id)
		}
		if err != nil && !errors.Is(err, vcd.ErrForbidden) && !errors.Is(err, vcd.ErrNotFound) {
			return err
		}
	}
	for i, p := range l.out.Pools {
		l.out.Pools[i] = l.gateway.fuller(p)
	}
	for i, set := range l.out.Sets {
		l.out.Sets[i] = l.gateway.fullerSet(set)
	}
	return nil
}

func (g *gateway) fuller(p lb.Pool) lb.Pool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.withFull(p)
}

func (g *gateway) fullerSet(s lb.Set) lb.Set {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.setRead[s.ID]
	if !ok || s.Full {
		return s
	}
	full := known.value
	full.Object = s.Object
	return full
}

// A turn is a pool or set whose turn it is to be read in full.
type turn struct {
	id  string
	set bool
}

// due returns whose turn it is, if it is time: first what lists hint at otherwise than before.
func (g *gateway) due(cluster string) []turn {
	pools, sets := g.ours(cluster)
	all := make([]turn, 0, len(pools)+len(sets))
	for _, p := range pools {
		all = append(all, turn{id: p.ID})
	}
	for _, s := range sets {
		all = append(all, turn{id: s.ID, set: true})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.driver.opts.Clock.Now()
	if len(all) == 0 || !g.rolled.IsZero() && now.Sub(g.rolled) < g.driver.opts.RollEvery {
		return nil
	}
	first := g.rolled.IsZero() // what was just written, or found after a start, need not be read at once
	g.rolled = now
	maps.DeleteFunc(g.pooled, func(_ string, known readPool) bool { return now.Sub(known.at) > hintAge })
	turns := g.changed(pools)
	if first {
		return nil
	}
	for most := (len(all) + rounds - 1) / rounds; len(turns) < most; g.rollNext++ {
		turns = append(turns, all[g.rollNext%len(all)])
	}
	return turns
}

// ours are the pools and sets that are marked as a cluster's.
func (g *gateway) ours(cluster string) (pools []vcd.PoolSummary, sets []vcd.IPSet) {
	for _, p := range g.pools.known() {
		if _, origin := lb.OwnerOf(cluster, lb.KindPool, p.Name, p.Description); origin == lb.Marked {
			pools = append(pools, p)
		}
	}
	for _, s := range g.sets.known() {
		if _, origin := lb.OwnerOf(cluster, lb.KindSet, s.Name, s.Description); origin == lb.Marked {
			sets = append(sets, s)
		}
	}
	return pools, sets
}

// changed returns pools that lists hint at otherwise than when they were looked at last, no more than have a turn at once; the others
// come next time. The lock is held.
func (g *gateway) changed(pools []vcd.PoolSummary) []turn {
	var turns []turn
	seen := make(map[string]lb.Hints, len(pools))
	for _, p := range pools {
		hints := *poolOf(p).Hints
		before, known := g.hinted[p.ID]
		switch {
		case p.Members == unknownMembers: // our own doing
		case !known || hints == before:
			seen[p.ID] = hints
		case len(turns) < (len(pools)+rounds-1)/rounds:
			turns = append(turns, turn{id: p.ID})
			seen[p.ID] = hints
		default:
			seen[p.ID] = before
		}
	}
	g.hinted = seen
	return turns
}

// elsewhere are the floating IPs that other organisations have, as far as that was found out.
func (g *gateway) elsewhere() []lb.Use {
	g.mu.Lock()
	defer g.mu.Unlock()
	var uses []lb.Use
	for a, until := range g.refused {
		if g.driver.opts.Clock.Now().Before(until) {
			uses = append(uses, lb.Use{Address: a, Kind: lb.KindAddress, Name: "another organization"})
		}
	}
	return uses
}

// maxFree is how many free addresses of a space are offered.
const maxFree = 16

// free offers addresses of a space that are not allocated as far as the organisation can see. What others have, it cannot see:
// once that was found out for one address, the search begins anywhere.
func (g *gateway) free(space vcd.IPSpace, claims []lb.Claim) []netip.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.driver.opts.Clock.Now()
	if now.Before(g.full[space.ID]) {
		return nil
	}
	taken := map[netip.Addr]bool{}
	for _, c := range claims {
		taken[c.Value] = true
	}
	for a, until := range g.refused {
		if now.Before(until) {
			taken[a] = true
		} else {
			delete(g.refused, a)
		}
	}
	anywhere := len(g.refused) > 0
	var out []netip.Addr
	for _, r := range space.Ranges {
		out = append(out, freeIn(r, taken, anywhere)...)
		if len(out) >= maxFree {
			return out[:maxFree]
		}
	}
	return out
}

// freeIn offers addresses of a range.
func freeIn(r vcd.AddressRange, taken map[netip.Addr]bool, anywhere bool) []netip.Addr {
	var out []netip.Addr
	start := r.From
	if anywhere {
		start = somewhere(r)
	}
	for a := start; r.Contains(a) && len(out) < maxFree; a = a.Next() {
		if !taken[a] {
			out = append(out, a)
		}
	}
	for a := r.From; a.Less(start) && len(out) < maxFree; a = a.Next() {
		if !taken[a] {
			out = append(out, a)
		}
	}
	return out
}

// somewhere is an address of a range, in its first 65,536.
func somewhere(r vcd.AddressRange) netip.Addr {
	from, to := r.From.As16(), r.To.As16()
	low := binary.BigEndian.Uint64(from[8:])
	size := min(binary.BigEndian.Uint64(to[8:])-low, 1<<16-1) + 1
	binary.BigEndian.PutUint64(from[8:], low+rand.Uint64N(size)) //nolint:gosec // spreads load, guards nothing
	a := netip.AddrFrom16(from)
	if r.From.Is4() {
		a = a.Unmap()
	}
	if !r.Contains(a) {
		return r.From
	}
	return a
}
