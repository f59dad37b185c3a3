// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func createSet(ctx context.Context, w writer, step lb.Step) error {
	f, err := w.gateway.fact(ctx, w.session)
	if err != nil {
		return err
	}
	want := step.Set
	defer w.gateway.generations.record(step.Name, want.Generation)
	listed := lb.Set{Object: written(step, want.Description)}
	_, err = create(ctx, w, w.gateway.sets, listed, func() (vcd.Task, error) {
		return w.session.Firewall.CreateIPSet(ctx, vcd.IPSet{
			Ref:         vcd.Ref{Name: step.Name},
			Description: want.Description,
			Owner:       vcd.Ref{ID: f.gateway.GroupOwner()},
			Addresses:   want.Members,
		})
	})
	return noteSetsForbidden(w.gateway, err)
}

func updateSet(ctx context.Context, w writer, step lb.Step) error {
	want := step.Set
	if w.gateway.generations.of(step.Name) > want.Generation {
		return nil // it was written from a newer node list in the meantime
	}
	defer w.gateway.generations.record(step.Name, want.Generation)
	if isUpToDate(w.gateway, step.ID, *want) {
		return nil
	}
	members := append([]netip.Addr{}, want.Members...)
	defer forgetCounts(w.gateway, want.Description)
	return update(ctx, w, objectUpdate[lb.Set]{
		list: w.gateway.sets,
		step: step,
		start: func() (vcd.Task, error) {
			return w.session.Firewall.UpdateIPSet(ctx, step.ID, vcd.IPSetChange{
				Description: &want.Description,
				Addresses:   &members,
			})
		},
		edit: func(s *lb.Set) { *s = lb.Set{Object: written(step, want.Description)} },
	})
}

func deleteSet(ctx context.Context, w writer, step lb.Step) error {
	return remove(ctx, w, w.gateway.sets, step.ID, func() (vcd.Task, error) {
		return w.session.Firewall.DeleteIPSet(ctx, step.ID)
	})
}

// isUpToDate reports whether a set already matches the desired one: all Services follow a change of nodes, and one of
// them writes the set.
func isUpToDate(g *gateway, id string, want lb.Set) bool {
	for _, s := range g.sets.known() {
		if s.ID == id && s.Description == want.Description && s.State == lb.Realized {
			known := g.details.set(s, g.driver.opts.MaxAge)
			return !known.Full || slices.Equal(known.Members, want.Members)
		}
	}
	return false
}

// forgetCounts records that the numbers of members are unknown for pools with IP sets in the cluster of a set.
// description is that of the set.
func forgetCounts(g *gateway, description string) {
	own, _ := lb.ParseMarker(description)
	g.pools.change(func(items []lb.Pool) []lb.Pool {
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

// noteSetsForbidden records that IP sets, or pools with IP sets, are forbidden. The next plan does without them.
func noteSetsForbidden(g *gateway, err error) error {
	if !errors.Is(err, vcd.ErrForbidden) {
		return err
	}
	g.refusals.forbidSets()
	return &failure{loadbalancer.ErrBusy, err}
}
