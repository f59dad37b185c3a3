// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const (
	// defaultMaxAge is the default of [BalancerOptions.MaxAge].
	defaultMaxAge = 20 * time.Second
	// networkAge is how long the properties of a network are cached that load balancers can be in.
	networkAge = time.Minute
	// rereadMembers is how many rules have their members read again each time that a network is observed: CloudStack
	// lists them by rule only.
	rereadMembers = 1
	// newList is how old a list of machines may be in which one is missing.
	newList = 2 * time.Second
	// refusedAge is how long a refusal of a public address counts. The quarantine of CloudStack ends by itself.
	refusedAge = time.Hour
	// mostRefused is how many refused addresses are tried before CloudStack chooses: it knows which ones it refuses.
	mostRefused = 5
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
func (o *observed) view(ctx context.Context, fresh bool, want service.Desired, f func(*state)) error {
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
	start := o.balancer.opts.Clock.Now()
	writes := o.ended()
	if err := o.observeNetwork(ctx, start); err != nil {
		return err
	}
	client := o.balancer.opts.Client
	next := state{
		network:  o.state.network,
		members:  o.state.members,
		policies: o.state.policies,
	}
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
	o.state = next
	o.read = start
	if o.ended() != writes {
		o.read = time.Time{} // what was read may be older than a write
	}
	o.forgetMembers()
	return nil
}

// observeNetwork reads the network, unless it was read lately and load balancers can be there.
func (o *observed) observeNetwork(ctx context.Context, now time.Time) error {
	usable := o.state.network.Has("Lb") && o.state.filter() != closed
	if usable && !o.network.IsZero() && now.Sub(o.network) <= networkAge {
		return nil
	}
	found, err := o.balancer.opts.Client.Networks(ctx, o.id)
	switch {
	case errors.Is(err, cloudstack.ErrNotFound) || err == nil && len(found) == 0:
		return fmt.Errorf("network %s does not exist or is not visible to the user: %w", o.id, loadbalancer.ErrRefused)
	case err != nil:
		return err
	}
	o.state.network = found[0]
	o.network = now
	return nil
}

// forgetMembers drops members and policies of rules that are gone, and those of the next rules that are read again.
func (o *observed) forgetMembers() {
	members := map[string][]string{}
	policies := map[string][]cloudstack.Policy{}
	for _, r := range o.state.rules {
		if found, ok := o.state.members[r.ID]; ok {
			members[r.ID] = found
		}
		if found, ok := o.state.policies[r.ID]; ok {
			policies[r.ID] = found
		}
	}
	for range min(rereadMembers, len(o.state.rules)) {
		o.rotate++
		next := o.state.rules[o.rotate%len(o.state.rules)].ID
		delete(members, next)
		delete(policies, next)
	}
	o.state.members = members
	o.state.policies = policies
}

// complete reads what only this wish needs.
func (o *observed) complete(ctx context.Context, want service.Desired) error {
	if want.Absent {
		return o.readShared(ctx, want)
	}
	var err error
	if o.state.vms, err = o.machines(ctx, want.Members); err != nil {
		return err
	}
	if o.state.free = nil; needsFree(&o.state, want) {
		if o.state.free, err = o.freeAddresses(ctx, want); err != nil {
			return err
		}
	}
	if err := o.readMembers(ctx, want); err != nil {
		return err
	}
	if x, ok := want.Extra.(extra); ok && (len(x.CIDRs) > 0 || o.state.filter() == unfiltered) {
		o.state.updatesCIDRs = o.balancer.updatesCIDRs(ctx)
	}
	return o.readShared(ctx, want)
}

// freeAddresses returns the addresses that may be associated for a wish: those that it requests, and the others that are
// not known to be refused. After many refusals it returns none of the others, so that CloudStack chooses one.
func (o *observed) freeAddresses(ctx context.Context, want service.Desired) ([]cloudstack.Address, error) {
	all, err := o.balancer.opts.Client.FreeAddresses(ctx, o.state.network)
	refused := o.balancer.refused
	return without(all, func(a cloudstack.Address) bool {
		return !contains(want.Requested, a.IPAddress) && (refused.Full() || refused.Has(a.IPAddress))
	}), err
}

// machines returns the virtual machines. One of a new node may be missing in a list that is not new. Not all need be
// shown: a member whose machine is not shown stays.
func (o *observed) machines(ctx context.Context, members []service.Member) ([]cloudstack.VM, error) {
	vms, err := o.balancer.opts.Machines.VMs(ctx, o.balancer.opts.MaxAge)
	if err != nil && !incomplete(err) {
		return nil, err
	}
	known := newIndex(vms)
	if !slices.ContainsFunc(members, func(m service.Member) bool { return known.vmOf(m) == nil }) {
		return vms, nil
	}
	vms, err = o.balancer.opts.Machines.VMs(ctx, min(newList, o.balancer.opts.MaxAge))
	if incomplete(err) {
		err = nil
	}
	return vms, err
}

// readShared reads the port forwarding and the VPNs of addresses that would be released without: they go with their
// address.
func (o *observed) readShared(ctx context.Context, want service.Desired) error {
	o.state.shared = nil
	var shared []string
	for _, s := range planFor(&o.state, want, nil).Steps {
		own, _ := s.(step)
		a, is := o.state.address(own.address)
		if own.verb != release || !is {
			continue
		}
		used, err := o.forwards(ctx, a.ID)
		if err != nil {
			return err
		}
		if used {
			shared = append(shared, a.ID)
		}
	}
	o.state.shared = shared
	return nil
}

// forwards reports whether a public address has port forwarding or a VPN.
func (o *observed) forwards(ctx context.Context, address string) (bool, error) {
	client := o.balancer.opts.Client
	forwards, err := client.PortForwards(ctx, address)
	if err != nil || len(forwards) > 0 || !o.state.network.Has("Vpn") {
		return len(forwards) > 0, err
	}
	vpns, err := client.VPNs(ctx, address)
	return len(vpns) > 0, err
}

// readMembers reads members, and policies that matter, of the owner's rules, as far as they are not known.
func (o *observed) readMembers(ctx context.Context, want service.Desired) error {
	for _, r := range newView(&o.state, want).mine {
		err := readOnce(ctx, o.state.members, r.ID, o.balancer.opts.Client.Members)
		if err == nil && needsPolicies(want, r) {
			err = readOnce(ctx, o.state.policies, r.ID, o.balancer.opts.Client.Policies)
		}
		if err != nil {
			o.read = time.Time{}
			return err
		}
	}
	return nil
}

// readOnce reads what belongs to a rule, unless it is known.
func readOnce[T any](
	ctx context.Context, known map[string][]T, rule string, read func(context.Context, string) ([]T, error),
) error {
	if _, is := known[rule]; is {
		return nil
	}
	found, err := read(ctx, rule)
	if err == nil {
		known[rule] = found
	}
	return err
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
		o.read = time.Time{}
		o.state.members = map[string][]string{}
		o.state.policies = map[string][]cloudstack.Policy{}
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
