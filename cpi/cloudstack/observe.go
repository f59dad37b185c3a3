// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const (
	// defaultMaxAge is the default of [BalancerOptions.MaxAge].
	defaultMaxAge = 20 * time.Second
	// networkAge is how long the properties of a network are cached if it can have load balancers.
	networkAge = time.Minute
	// rereadMembers is the number of rules whose members are read again with each observation of a network. CloudStack
	// lists members only by rule.
	rereadMembers = 1
	// recentList is the maximum age of a list of machines if a machine is missing in it.
	recentList = 2 * time.Second
	// refusedAge is how long a refusal of a public address is remembered. CloudStack's quarantine expires by itself.
	refusedAge = time.Hour
	// maxRefused is the number of refused addresses after which CloudStack chooses the address, because it can avoid
	// those that it refuses.
	maxRefused = 5
)

// An observed is the cached state of a network. Writes of this process update it.
type observed struct {
	balancer *Balancer
	id       string

	mu      sync.Mutex // held during reads of CloudStack
	state   state
	read    time.Time // start of the last read; zero: must be read again
	network time.Time // time when the network was read

	writing sync.Mutex
	writes  int // number of finished writes
	rotate  int // index of the rule whose members are read again
}

// view calls f with the state. If fresh is set, the state is not older than the call.
func (o *observed) view(ctx context.Context, fresh bool, want service.Desired, f func(*state)) error {
	now := o.balancer.opts.Clock.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	oldest := now.Add(-o.balancer.opts.MaxAge)
	if fresh {
		oldest = now
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

// aclList returns the ID of the network's ACL list as last observed; empty if the network has none.
func (o *observed) aclList() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state.network.ACLID
}

// observe reads the state, except for members.
func (o *observed) observe(ctx context.Context) error {
	start := o.balancer.opts.Clock.Now()
	writes := o.finishedWrites()
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
	if o.finishedWrites() != writes {
		o.read = time.Time{} // the result may be older than a write
	}
	o.forgetMembers()
	return nil
}

// observeNetwork reads the network, unless it was read recently and can have load balancers.
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

// forgetMembers drops the members and policies of deleted rules, and those of the rules that are due to be read again.
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

// complete reads the data that only this request needs.
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

// freeAddresses returns the addresses that may be associated for a request: those that it names, and others that were
// not refused before. After many refusals it returns none of the others, so that CloudStack chooses one.
func (o *observed) freeAddresses(ctx context.Context, want service.Desired) ([]cloudstack.Address, error) {
	all, err := o.balancer.opts.Client.FreeAddresses(ctx, o.state.network)
	refused := o.balancer.refused
	return without(all, func(a cloudstack.Address) bool {
		return !contains(want.Requested, a.IPAddress) && (refused.Full() || refused.Has(a.IPAddress))
	}), err
}

// machines returns the virtual machines. It reads them again if one is missing, because a cached list may lack the
// machine of a new node. An incomplete list is accepted: a member whose machine is not listed remains.
func (o *observed) machines(ctx context.Context, members []service.Member) ([]cloudstack.VM, error) {
	vms, err := o.balancer.opts.Machines.VMs(ctx, o.balancer.opts.MaxAge)
	if err != nil && !incomplete(err) {
		return nil, err
	}
	known := newIndex(vms)
	if !slices.ContainsFunc(members, func(m service.Member) bool { return known.vmOf(m) == nil }) {
		return vms, nil
	}
	vms, err = o.balancer.opts.Machines.VMs(ctx, min(recentList, o.balancer.opts.MaxAge))
	if incomplete(err) {
		err = nil
	}
	return vms, err
}

// readShared reads the port forwarding rules and VPNs of addresses that would otherwise be released, because releasing
// an address removes them.
func (o *observed) readShared(ctx context.Context, want service.Desired) error {
	o.state.shared = nil
	var shared []string
	for _, s := range planFor(&o.state, want, cpi.Moved{}).Steps {
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

// forwards reports whether a public address has port forwarding rules or a VPN.
func (o *observed) forwards(ctx context.Context, address string) (bool, error) {
	client := o.balancer.opts.Client
	forwards, err := client.PortForwards(ctx, address)
	if err != nil || len(forwards) > 0 || !o.state.network.Has("Vpn") {
		return len(forwards) > 0, err
	}
	vpns, err := client.VPNs(ctx, address)
	return len(vpns) > 0, err
}

// readMembers reads the members and the relevant policies of the owner's rules, unless they are cached.
func (o *observed) readMembers(ctx context.Context, want service.Desired) error {
	for _, r := range newView(&o.state, want).mine {
		err := readUncached(ctx, o.state.members, r.ID, o.balancer.opts.Client.Members)
		if err == nil && needsPolicies(want, r) {
			err = readUncached(ctx, o.state.policies, r.ID, o.balancer.opts.Client.Policies)
		}
		if err != nil {
			o.read = time.Time{}
			return err
		}
	}
	return nil
}

// readUncached reads the data of a rule, unless it is cached.
func readUncached[T any](
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

func (o *observed) finishedWrites() int {
	o.writing.Lock()
	defer o.writing.Unlock()
	return o.writes
}

// change runs a step and updates the state. A failure invalidates the state.
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

// copied returns a copy that steps can read while the state changes.
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
