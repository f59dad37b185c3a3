// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// createPool creates a pool. A pool with health checks of its own is created without them, and then updated, so that its
// marker announces the health monitor.
func createPool(ctx context.Context, w writer, step lb.Step) error {
	want := *step.Pool
	if err := resolve(ctx, w, w.gateway.sets, &want.Group); err != nil {
		return err
	}
	checked := want.Check != (lb.PoolCheck{})
	if checked {
		want.Description = lb.Announced(want.Description)
	}
	_, err := create(ctx, w, w.gateway.pools, listedPool(step, want), func() (vcd.Task, error) {
		return w.session.Balancers.CreatePool(ctx, vcd.ServerPool{
			Ref:         vcd.Ref{Name: step.Name},
			Description: want.Description,
			Gateway:     vcd.Ref{ID: w.gateway.id},
			DefaultPort: want.NodePort,
			Algorithm:   cmp.Or(want.Algorithm, "ROUND_ROBIN"),
			Members:     poolMembers(want),
			MemberGroup: vcd.Ref{ID: want.Group.ID},
			Monitors:    monitors(want.Monitors),
			Sticky:      want.Sticky,
		})
	})
	if err != nil || !checked {
		return replanPool(ctx, w, want, err)
	}
	created := lb.Ref{Name: step.Name}
	if err := resolve(ctx, w, w.gateway.pools, &created); err != nil {
		return err
	}
	step.ID = created.ID
	return updatePool(ctx, w, step)
}

func updatePool(ctx context.Context, w writer, step lb.Step) error {
	want := *step.Pool
	if err := resolve(ctx, w, w.gateway.sets, &want.Group); err != nil {
		return err
	}
	change := poolChange(want, step.FormerMonitors)
	var err error
	if change.Check, err = writeCheck(ctx, w, step); err != nil {
		return replanPool(ctx, w, want, err)
	}
	err = update(ctx, w, objectUpdate[lb.Pool]{
		list:  w.gateway.pools,
		step:  step,
		start: func() (vcd.Task, error) { return w.session.Balancers.UpdatePool(ctx, step.ID, change) },
		edit:  func(p *lb.Pool) { *p = listedPool(step, want) },
	})
	return replanPool(ctx, w, want, err)
}

// writeCheck writes the health monitor of a pool, and returns it. It returns nil, and removes a former monitor, if the
// pool should have none.
func writeCheck(ctx context.Context, w writer, step lb.Step) (*vcd.HealthMonitor, error) {
	have := knownPool(w, step.ID)
	if step.Pool.Check == (lb.PoolCheck{}) {
		if isChecked(have) {
			return nil, removeMonitor(ctx, w, step)
		}
		return nil, nil
	}
	if !isChecked(have) {
		if err := announceCheck(ctx, w, step); err != nil {
			return nil, err
		}
	}
	m, err := ensureMonitor(ctx, w, step)
	if err == nil {
		w.gateway.details.keepMonitor(step.ID, m.ID)
	}
	return &m, err
}

// announceCheck writes the marker of an existing pool that is about to get a health monitor.
func announceCheck(ctx context.Context, w writer, step lb.Step) error {
	description := lb.Announced(step.Pool.Description)
	return update(ctx, w, objectUpdate[lb.Pool]{
		list: w.gateway.pools,
		step: step,
		start: func() (vcd.Task, error) {
			return w.session.Balancers.UpdatePool(ctx, step.ID, vcd.PoolChange{Description: &description})
		},
		edit: func(p *lb.Pool) { p.Description = description },
	})
}

func deletePool(ctx context.Context, w writer, step lb.Step) error {
	if isChecked(knownPool(w, step.ID)) {
		if err := removeMonitor(ctx, w, step); err != nil {
			return err
		}
	}
	return remove(ctx, w, w.gateway.pools, step.ID, func() (vcd.Task, error) {
		return w.session.Balancers.DeletePool(ctx, step.ID)
	})
}

// replanPool handles a refused pool. If its IP set is deleted, or if IP sets in pools are forbidden, the error makes
// the caller plan again.
func replanPool(ctx context.Context, w writer, want lb.Pool, err error) error {
	if want.Group.ID == "" {
		return err
	}
	return noteSetsForbidden(w.gateway, replanIfDeleted(ctx, w, w.gateway.sets, want.Group.ID, err))
}

// poolChange returns the change that makes a pool match the desired one. Former monitors are removed.
func poolChange(want lb.Pool, formerMonitors []lb.Monitor) vcd.PoolChange {
	change := vcd.PoolChange{
		Description: &want.Description,
		DefaultPort: &want.NodePort,
		Monitors:    monitors(want.Monitors),
		Sticky:      &want.Sticky,
	}
	for _, m := range formerMonitors {
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
	return change
}

// listedPool returns the pool of a step in the form in which lists will show it.
func listedPool(step lb.Step, want lb.Pool) lb.Pool {
	hints := &lb.Hints{
		ByGroup:   want.Group.ID != "",
		Members:   len(want.Members),
		Monitored: want.IsMonitored(),
	}
	if hints.ByGroup {
		hints.Members = unknownMembers
	}
	return lb.Pool{Object: written(step, want.Description), Hints: hints}
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
