package edge

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func poolName(p vcd.PoolSummary) named { return named{p.ID, p.Name, p.Description} }

func setName(s vcd.IPSet) named { return named{s.ID, s.Name, s.Description} }

func (r *run) createPool(ctx context.Context) error {
	spec := r.step.Pool
	group, err := resolve(ctx, r, r.gateway.sets, spec.Group, setName)
	if err != nil {
		return err
	}
	err = create(ctx, r, creation[vcd.PoolSummary]{
		part: r.gateway.pools, description: spec.Description, name: poolName,
		start: func() (vcd.Task, error) {
			return r.session.Balancers.CreatePool(ctx, vcd.PoolSpec{
				Name: r.step.Name, Description: spec.Description, Gateway: r.gateway.id, Algorithm: cmp.Or(spec.Algorithm, "ROUND_ROBIN"),
				DefaultPort: spec.NodePort, Members: poolMembers(spec), MemberGroup: group, Monitors: monitors(spec.Probes), Sticky: spec.Sticky,
			})
		},
		made: func(id string) vcd.PoolSummary {
			return vcd.PoolSummary{
				Ref: vcd.Ref{ID: id, Name: r.step.Name}, Description: spec.Description, Status: vcd.Realized, Enabled: true, ByGroup: group != "",
				Members: listedMembers(spec, group), ActiveMonitors: len(spec.Probes) > 0,
			}
		},
	})
	return r.withoutSets(group, lost(ctx, r, r.gateway.sets, group, err))
}

// withoutSets remembers that pools by IP sets are forbidden; the next plan does without.
func (r *run) withoutSets(group string, err error) error {
	if group == "" || !errors.Is(err, vcd.ErrForbidden) {
		return err
	}
	r.gateway.forbidSets()
	return &failure{lb.ErrBusy, err}
}

// listedMembers is how many members a list will show of a pool; of a group's, nobody knows until then.
func listedMembers(spec *lb.PoolSpec, group string) int {
	if group != "" {
		return unknownMembers
	}
	return len(spec.Members)
}

// unknownMembers is how many members a pool has that was not listed since that changed.
const unknownMembers = -1

func poolMembers(spec *lb.PoolSpec) []vcd.PoolMember {
	members := make([]vcd.PoolMember, len(spec.Members))
	for i, a := range spec.Members {
		members[i] = vcd.PoolMember{Address: a, Port: spec.NodePort}
	}
	return members
}

func monitors(probes []lb.Health) []string {
	types := make([]string, len(probes))
	for i, p := range probes {
		types[i] = string(p.Monitor)
	}
	return types
}

func (r *run) updatePool(ctx context.Context) error {
	spec := r.step.Pool
	group, err := resolve(ctx, r, r.gateway.sets, spec.Group, setName)
	if err != nil {
		return err
	}
	change := vcd.PoolChange{
		Description: &spec.Description, DefaultPort: &spec.NodePort, Monitors: monitors(spec.Probes), Sticky: &spec.Sticky,
	}
	for _, m := range spec.Former {
		change.NoMonitors = append(change.NoMonitors, string(m))
	}
	if group != "" {
		change.MemberGroup = &group
	} else {
		members := poolMembers(spec)
		change.Members = &members
	}
	if spec.Algorithm != "" {
		change.Algorithm = &spec.Algorithm
	}
	err = update(ctx, r, r.gateway.pools,
		func() (vcd.Task, error) { return r.session.Balancers.UpdatePool(ctx, r.step.ID, change) },
		func(p *vcd.PoolSummary) {
			p.Description, p.ByGroup, p.Status = spec.Description, group != "", vcd.Realized
			p.Members, p.ActiveMonitors = listedMembers(spec, group), len(spec.Probes) > 0
		})
	return r.withoutSets(group, lost(ctx, r, r.gateway.sets, group, err))
}

func (r *run) deletePool(ctx context.Context) error {
	return remove(ctx, r, r.gateway.pools, func() (vcd.Task, error) { return r.session.Balancers.DeletePool(ctx, r.step.ID) })
}

func (r *run) createSet(ctx context.Context) error {
	spec := r.step.Set
	defer r.gateway.wrote(r.step.Name, spec.Edition)
	err := create(ctx, r, creation[vcd.IPSet]{
		part: r.gateway.sets, description: spec.Description, name: setName,
		start: func() (vcd.Task, error) {
			return r.session.Firewall.CreateIPSet(ctx, vcd.IPSetSpec{
				Name: r.step.Name, Description: spec.Description, Owner: r.gateway.id, Addresses: spec.Members,
			})
		},
		made: func(id string) vcd.IPSet {
			return vcd.IPSet{Ref: vcd.Ref{ID: id, Name: r.step.Name}, Description: spec.Description, Status: vcd.Realized}
		},
	})
	return r.withoutSets(r.step.Name, err)
}

func (r *run) updateSet(ctx context.Context) error {
	spec := r.step.Set
	if r.gateway.edition(r.step.Name) > spec.Edition {
		return nil // somebody with a newer list of nodes was quicker
	}
	defer r.gateway.wrote(r.step.Name, spec.Edition)
	if r.followed() {
		return nil
	}
	members := append([]netip.Addr{}, spec.Members...)
	defer r.recount()
	return update(ctx, r, r.gateway.sets,
		func() (vcd.Task, error) {
			return r.session.Firewall.UpdateIPSet(ctx, r.step.ID, vcd.IPSetChange{Description: &spec.Description, Addresses: &members})
		},
		func(s *vcd.IPSet) { s.Description, s.Status = spec.Description, vcd.Realized })
}

// recount notes that the pools of the cluster whose members are those of a group have others now.
func (r *run) recount() {
	cluster := r.owner(r.step.Set.Description).Cluster
	r.gateway.pools.change(func(items []vcd.PoolSummary) []vcd.PoolSummary {
		items = slices.Clone(items)
		for i, p := range items {
			if m, _ := lb.ParseMarker(p.Description); p.ByGroup && m.Owner.Cluster == cluster {
				items[i].Members = unknownMembers
			}
		}
		return items
	})
}

// followed says whether the set is as wanted by now: all Services follow a change of nodes, and it takes only one of them to write it down.
func (r *run) followed() bool {
	for _, s := range r.gateway.sets.known() {
		if s.ID != r.step.ID || s.Description != r.step.Set.Description || s.Status != vcd.Realized {
			continue
		}
		known := r.gateway.setAsKnown(s)
		return !known.Full || slices.Equal(known.Members, r.step.Set.Members)
	}
	return false
}

func (r *run) deleteSet(ctx context.Context) error {
	return remove(ctx, r, r.gateway.sets, func() (vcd.Task, error) { return r.session.Firewall.DeleteIPSet(ctx, r.step.ID) })
}
