// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// unknownMembers is how many members a pool has that was not listed since they changed.
const unknownMembers = -1

type poolExecutor struct{ *executor }

func (e *poolExecutor) create(ctx context.Context) error {
	want := *e.step.Pool
	if err := resolve(ctx, e.executor, e.gateway.sets, &want.Group); err != nil {
		return err
	}
	_, err := create(ctx, e.executor, e.gateway.pools, e.listed(want), func() (vcd.Task, error) {
		return e.session.Balancers.CreatePool(ctx, vcd.ServerPool{
			Ref:         vcd.Ref{Name: e.step.Name},
			Description: want.Description,
			Gateway:     vcd.Ref{ID: e.gateway.id},
			DefaultPort: want.NodePort,
			Algorithm:   cmp.Or(want.Algorithm, "ROUND_ROBIN"),
			Members:     poolMembers(want),
			MemberGroup: vcd.Ref{ID: want.Group.ID},
			Monitors:    monitors(want.Monitors),
			Sticky:      want.Sticky,
		})
	})
	return e.withoutSets(want.Group.ID, lost(ctx, e.executor, e.gateway.sets, want.Group.ID, err))
}

func (e *poolExecutor) update(ctx context.Context) error {
	want := *e.step.Pool
	if err := resolve(ctx, e.executor, e.gateway.sets, &want.Group); err != nil {
		return err
	}
	change := vcd.PoolChange{
		Description: &want.Description,
		DefaultPort: &want.NodePort,
		Monitors:    monitors(want.Monitors),
		Sticky:      &want.Sticky,
	}
	for _, m := range e.step.FormerMonitors {
		change.NoMonitors = append(change.NoMonitors, string(m))
	}
	if want.Group.ID != "" {
		change.MemberGroup = &want.Group.ID
	} else {
		members := poolMembers(want)
		change.Members = &members
	}
	if want.Algorithm != "" {
		change.Algorithm = &want.Algorithm
	}
	err := update(ctx, e.executor, e.gateway.pools,
		func() (vcd.Task, error) { return e.session.Balancers.UpdatePool(ctx, e.step.ID, change) },
		func(p *lb.Pool) { *p = e.listed(want) })
	return e.withoutSets(want.Group.ID, lost(ctx, e.executor, e.gateway.sets, want.Group.ID, err))
}

func (e *poolExecutor) remove(ctx context.Context) error {
	return remove(ctx, e.executor, e.gateway.pools,
		func() (vcd.Task, error) { return e.session.Balancers.DeletePool(ctx, e.step.ID) })
}

// listed is the pool as lists will show it.
func (e *poolExecutor) listed(want lb.Pool) lb.Pool {
	hints := &lb.Hints{ByGroup: want.Group.ID != "", Members: len(want.Members), Monitored: len(want.Monitors) > 0}
	if hints.ByGroup {
		hints.Members = unknownMembers
	}
	return lb.Pool{Object: e.object(want.Description), Hints: hints}
}

func poolMembers(p lb.Pool) []vcd.PoolMember {
	members := make([]vcd.PoolMember, len(p.Members))
	for i, a := range p.Members {
		members[i] = vcd.PoolMember{Address: a, Port: p.NodePort}
	}
	return members
}

func monitors(all []lb.Monitor) []string {
	types := make([]string, len(all))
	for i, m := range all {
		types[i] = string(m)
	}
	return types
}

// withoutSets remembers that pools by IP sets are forbidden; the next plan does without.
func (e *executor) withoutSets(group string, err error) error {
	if group == "" || !errors.Is(err, vcd.ErrForbidden) {
		return err
	}
	e.gateway.refusals.forbidSets()
	return &failure{lb.ErrBusy, err}
}

type setExecutor struct{ *executor }

func (e *setExecutor) create(ctx context.Context) error {
	f, err := e.gateway.fact(ctx, e.session)
	if err != nil {
		return err
	}
	want := e.step.Set
	defer e.gateway.generations.wrote(e.step.Name, want.Generation)
	listed := lb.Set{Object: e.object(want.Description)}
	_, err = create(ctx, e.executor, e.gateway.sets, listed, func() (vcd.Task, error) {
		return e.session.Firewall.CreateIPSet(ctx, vcd.IPSet{
			Ref:         vcd.Ref{Name: e.step.Name},
			Description: want.Description,
			Owner:       vcd.Ref{ID: f.gateway.GroupOwner()},
			Addresses:   want.Members,
		})
	})
	return e.withoutSets(e.step.Name, err)
}

func (e *setExecutor) update(ctx context.Context) error {
	want := e.step.Set
	if e.gateway.generations.of(e.step.Name) > want.Generation {
		return nil // it was written from a newer node list meanwhile
	}
	defer e.gateway.generations.wrote(e.step.Name, want.Generation)
	if e.upToDate() {
		return nil
	}
	members := append([]netip.Addr{}, want.Members...)
	defer e.forgetCounts()
	return update(ctx, e.executor, e.gateway.sets,
		func() (vcd.Task, error) {
			return e.session.Firewall.UpdateIPSet(ctx, e.step.ID,
				vcd.IPSetChange{Description: &want.Description, Addresses: &members})
		},
		func(s *lb.Set) { *s = lb.Set{Object: e.object(want.Description)} })
}

func (e *setExecutor) remove(ctx context.Context) error {
	return remove(ctx, e.executor, e.gateway.sets,
		func() (vcd.Task, error) { return e.session.Firewall.DeleteIPSet(ctx, e.step.ID) })
}

// upToDate reports whether the set is as wanted by now: all Services follow a change of nodes, and one of them
// writes it.
func (e *setExecutor) upToDate() bool {
	for _, s := range e.gateway.sets.known() {
		if s.ID == e.step.ID && s.Description == e.step.Set.Description && s.State == lb.Realized {
			known := e.gateway.details.set(s, e.gateway.driver.opts.MaxAge)
			return !known.Full || slices.Equal(known.Members, e.step.Set.Members)
		}
	}
	return false
}

// forgetCounts notes that it is not known how many members the pools of the cluster have that have those of a group.
func (e *setExecutor) forgetCounts() {
	own, _ := lb.ParseMarker(e.step.Set.Description)
	e.gateway.pools.change(func(items []lb.Pool) []lb.Pool {
		items = slices.Clone(items)
		for i, p := range items {
			if m, _ := lb.ParseMarker(p.Description); p.Hints.ByGroup && m.Owner.Cluster == own.Owner.Cluster {
				hints := *p.Hints
				hints.Members = unknownMembers
				items[i].Hints = &hints
			}
		}
		return items
	})
}

// generations are those of the node lists from which IP sets were written.
type generations struct {
	mu    sync.Mutex
	bySet map[string]uint64
}

// of returns the generation of a set by its name; 0 if it is not known.
func (g *generations) of(set string) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bySet[set]
}

// wrote notes that a set was written from a generation, or may have been: an older one must not come after it.
func (g *generations) wrote(set string, generation uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bySet[set] = max(g.bySet[set], generation)
}
