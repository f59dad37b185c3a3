// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Run runs one step of a plan for a gateway, given by its URN, and waits until it is done. Writes to a gateway are
// queued. Errors wrap [loadbalancer.ErrBusy], [loadbalancer.ErrRefused] or [loadbalancer.ErrUnknown]. After ErrUnknown,
// the step may be done or still running.
func (d *Driver) Run(ctx context.Context, gateway string, planned loadbalancer.Step) error {
	step, err := ownStep(planned)
	if err != nil {
		return err
	}
	g := d.at(gateway)
	release, err := g.queue.acquire(ctx)
	if err != nil {
		return classified(fmt.Errorf("%s: %w", step, err))
	}
	defer release()
	s, err := d.session(ctx)
	if err != nil {
		return classified(err)
	}
	w := writer{
		gateway: g,
		session: s,
	}
	if err := run(ctx, w, step); err != nil {
		invalidate(g, step) // the state in VCD is unknown
		return classified(fmt.Errorf("%s: %w", step, err))
	}
	return nil
}

// ownStep converts a step to a step of package lb.
func ownStep(planned loadbalancer.Step) (lb.Step, error) {
	step, ok := planned.(lb.Step)
	if !ok {
		return lb.Step{}, fmt.Errorf("%s is not a step for an edge gateway: %w", planned, loadbalancer.ErrRefused)
	}
	return step, nil
}

// A kind contains the functions that write objects of one kind. A function is nil if no step needs it.
type kind struct {
	// carried reports whether a step contains the object to write.
	carried func(lb.Step) bool
	create  write
	update  write
	mark    write
	remove  write
	// affected returns the lists that a write may change.
	affected func(*gateway) []invalidator
}

// A write runs one step.
type write func(ctx context.Context, w writer, step lb.Step) error

// An invalidator is a cached list of any type.
type invalidator interface{ invalidate() }

// kinds are all kinds of objects that are written. Hosts are only observed.
var kinds = map[loadbalancer.Kind]kind{
	lb.KindAddress: {
		carried:  func(s lb.Step) bool { return s.Address != nil },
		create:   allocateAddress,
		update:   markAddress,
		mark:     markAddress,
		remove:   releaseAddress,
		affected: func(g *gateway) []invalidator { return []invalidator{g.claims} },
	},
	lb.KindCertificate: {
		carried:  func(s lb.Step) bool { return s.Certificate != nil },
		create:   importCertificate,
		remove:   deleteCertificate,
		affected: func(g *gateway) []invalidator { return []invalidator{g.certificates} },
	},
	lb.KindSet: {
		carried:  func(s lb.Step) bool { return s.Set != nil },
		create:   createSet,
		update:   updateSet,
		remove:   deleteSet,
		affected: func(g *gateway) []invalidator { return []invalidator{g.sets} },
	},
	lb.KindPool: {
		carried:  func(s lb.Step) bool { return s.Pool != nil },
		create:   createPool,
		update:   updatePool,
		remove:   deletePool,
		affected: func(g *gateway) []invalidator { return []invalidator{g.pools} },
	},
	lb.KindService: {
		carried:  func(s lb.Step) bool { return s.Service != nil },
		create:   createService,
		update:   updateService,
		remove:   deleteService,
		affected: func(g *gateway) []invalidator { return []invalidator{g.services, g.pools, g.groups, g.used} },
	},
	lb.KindProfile: {
		carried:  func(s lb.Step) bool { return s.Profile != nil },
		create:   createProfile,
		update:   updateProfile,
		remove:   deleteProfile,
		affected: func(g *gateway) []invalidator { return []invalidator{g.profiles} },
	},
	lb.KindRule: {
		carried:  func(s lb.Step) bool { return s.Rule != nil },
		create:   createRule,
		update:   updateRule,
		remove:   deleteRule,
		affected: func(g *gateway) []invalidator { return []invalidator{g.rules, g.used} },
	},
	lb.KindFirewall: {
		carried:  func(s lb.Step) bool { return s.Firewall != nil },
		create:   createFirewallRule,
		remove:   deleteFirewallRule,
		affected: func(g *gateway) []invalidator { return []invalidator{g.firewall} },
	},
}

// run runs a step with the function for its kind and verb.
func run(ctx context.Context, w writer, step lb.Step) error {
	f := writeOf(step)
	if f == nil {
		return failed(loadbalancer.ErrRefused, "this step cannot be run")
	}
	return f(ctx, w, step)
}

// writeOf returns the function that runs a step. It returns nil if there is none or the step is incomplete.
func writeOf(step lb.Step) write {
	k, known := kinds[step.Kind]
	switch {
	case !known:
		return nil
	case step.Verb == lb.Delete && step.ID != "":
		return k.remove
	case !k.carried(step):
		return nil
	case step.Verb == lb.Create:
		return k.create
	case step.Verb == lb.Update && step.ID != "":
		return k.update
	case step.Verb == lb.Mark:
		return k.mark
	}
	return nil
}

// invalidate forces a read of everything that a step may have changed.
func invalidate(g *gateway, step lb.Step) {
	g.details.forget(step.ID)
	k, known := kinds[step.Kind]
	if !known {
		return
	}
	for _, list := range k.affected(g) {
		list.invalidate()
	}
}
