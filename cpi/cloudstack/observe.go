package cloudstack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
)

const (
	// defaultMaxAge is the default of [BalancerOptions.MaxAge].
	defaultMaxAge = 20 * time.Second
	// networkAge is how long the properties of a network are cached.
	networkAge = 10 * time.Minute
	// rereadMembers is how many rules have their members read again each time that a network is observed: CloudStack
	// lists them by rule only.
	rereadMembers = 1
	// newList is how old a list of machines may be in which one is missing.
	newList = 2 * time.Second
)

// An observed is what was observed of a network, kept up to date with our own writes.
type observed struct {
	balancer *Balancer
	id       string

	mu      sync.Mutex // held while CloudStack is read
	state   state
	read    time.Time // when reading of the state began; zero: it has to be read again
	network time.Time // when the network was read

	writing sync.Mutex
	writes  int // that ended
	rotate  int // of rules whose members are read again
}

// view calls f with the state. It is not older than the call if fresh is set.
func (o *observed) view(ctx context.Context, fresh bool, want plan.Desired, f func(*state)) error {
	asked := o.balancer.opts.Clock.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	oldest := asked.Add(-o.balancer.opts.MaxAge)
	if fresh {
		oldest = asked
	}
	if o.read.IsZero() || o.read.Before(oldest) {
		if err := o.observe(ctx); err != nil {
			return err
		}
	}
	if err := o.complete(ctx, want); err != nil {
		return err
	}
	f(&o.state)
	return nil
}

// observe reads the state, but for members.
func (o *observed) observe(ctx context.Context) error {
	start, writes := o.balancer.opts.Clock.Now(), o.ended()
	if err := o.observeNetwork(ctx, start); err != nil {
		return err
	}
	client, next := o.balancer.opts.Client, state{network: o.state.network, members: o.state.members}
	var err error
	if next.addresses, err = client.Addresses(ctx, next.network); err != nil {
		return err
	}
	if next.rules, err = client.Rules(ctx, o.id); err != nil {
		return err
	}
	switch next.filter() {
	case firewalled:
		next.firewalls, err = client.Firewalls(ctx, o.id)
	case listed:
		next.acls, err = client.ACLs(ctx, next.network.ACLID)
	default:
	}
	if err != nil {
		return err
	}
	o.state, o.read = next, start
	if o.ended() != writes {
		o.read = time.Time{} // what was read may be older than a write
	}
	o.forgetMembers()
	return nil
}

// observeNetwork reads the network, unless it was read lately.
func (o *observed) observeNetwork(ctx context.Context, now time.Time) error {
	if !o.network.IsZero() && now.Sub(o.network) <= networkAge {
		return nil
	}
	found, err := o.balancer.opts.Client.Networks(ctx, o.id)
	switch {
	case errors.Is(err, cloudstack.ErrNotFound) || err == nil && len(found) == 0:
		return fmt.Errorf("network %s is gone, or the user may not see it: %w", o.id, plan.ErrRefused)
	case err != nil:
		return err
	}
	o.state.network, o.network = found[0], now
	return nil
}

// forgetMembers drops the members of rules that are gone, and those of the next rules whose members are read again.
func (o *observed) forgetMembers() {
	kept := map[string][]string{}
	for _, r := range o.state.rules {
		if members, ok := o.state.members[r.ID]; ok {
			kept[r.ID] = members
		}
	}
	for range min(rereadMembers, len(o.state.rules)) {
		o.rotate++
		delete(kept, o.state.rules[o.rotate%len(o.state.rules)].ID)
	}
	o.state.members = kept
}

// complete reads what only this wish needs.
func (o *observed) complete(ctx context.Context, want plan.Desired) error {
	if want.Absent {
		return o.readForwards(ctx, want)
	}
	client := o.balancer.opts.Client
	var err error
	if o.state.vms, err = o.machines(ctx, want.Members); err != nil {
		return err
	}
	if o.state.free = nil; needsFree(&o.state, want) {
		if o.state.free, err = client.FreeAddresses(ctx, o.state.network); err != nil {
			return err
		}
	}
	if err := o.readMembers(ctx, want); err != nil {
		return err
	}
	if x, ok := want.Extra.(extra); ok && (len(x.CIDRs) > 0 || o.state.filter() == unfiltered) {
		o.state.updatesCIDRs = o.balancer.updatesCIDRs(ctx)
	}
	return o.readForwards(ctx, want)
}

// machines returns the virtual machines. One of a new node may be missing in a list that is not new.
func (o *observed) machines(ctx context.Context, members []plan.Member) ([]cloudstack.VM, error) {
	vms, err := o.balancer.opts.Machines.VMs(ctx, o.balancer.opts.MaxAge)
	if err != nil {
		return nil, err
	}
	known := newIndex(vms)
	if slices.ContainsFunc(members, func(m plan.Member) bool { return known.vmOf(m) == nil }) {
		return o.balancer.opts.Machines.VMs(ctx, min(newList, o.balancer.opts.MaxAge))
	}
	return vms, nil
}

// readForwards reads the port forwarding of addresses that would be released without it: it goes with its address.
func (o *observed) readForwards(ctx context.Context, want plan.Desired) error {
	o.state.forwards = nil
	var found []cloudstack.PortForward
	for _, s := range planFor(&o.state, want, nil).Steps {
		own, _ := s.(step)
		a, is := o.state.address(own.address)
		if own.verb != release || !is {
			continue
		}
		more, err := o.balancer.opts.Client.PortForwards(ctx, a.ID)
		if err != nil {
			return err
		}
		found = append(found, more...)
	}
	o.state.forwards = found
	return nil
}

// readMembers reads the members of the owner's rules, as far as they are not known.
func (o *observed) readMembers(ctx context.Context, want plan.Desired) (err error) {
	for _, r := range newView(&o.state, want).mine {
		if _, known := o.state.members[r.ID]; known {
			continue
		}
		if o.state.members[r.ID], err = o.balancer.opts.Client.Members(ctx, r.ID); err != nil {
			delete(o.state.members, r.ID)
			o.read = time.Time{}
			return err
		}
	}
	return nil
}

func (o *observed) ended() int {
	o.writing.Lock()
	defer o.writing.Unlock()
	return o.writes
}

// change runs a step, and brings the state up to date; after a failure nothing of it is believed.
func (o *observed) change(ctx context.Context, s step) error {
	o.mu.Lock()
	have := o.state.copied()
	o.mu.Unlock()
	apply, err := s.run(ctx, o.balancer.opts.Client, &have)
	o.writing.Lock()
	o.writes++
	o.writing.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.read, o.state.members = time.Time{}, map[string][]string{}
		return err
	}
	apply(&o.state)
	return nil
}

// copied returns a copy that steps may read while the state changes.
func (s *state) copied() state {
	out := *s
	out.addresses = append([]cloudstack.Address(nil), s.addresses...)
	out.rules = append([]cloudstack.Rule(nil), s.rules...)
	out.members = map[string][]string{}
	for id, members := range s.members {
		out.members[id] = members
	}
	return out
}
