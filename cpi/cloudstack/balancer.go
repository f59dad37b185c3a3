// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/refused"
)

// BalancerOptions are what a [Balancer] is made of.
type BalancerOptions struct {
	Client *cloudstack.Client
	// Machines are those that members are found among.
	Machines *Machines
	// Cluster is the id of the cluster.
	Cluster string
	// Network of load balancers whose Service names none, by name or id; empty: the network where load balancers of the
	// cluster stand, else that of the nodes.
	Network string
	// Networks are the others of the configuration, by name or id.
	Networks []string
	// Services returns the owners of the cluster's load balancers, which may have what the original made; nil: none.
	Services func() []loadbalancer.Owner
	// Workers returns the Nodes that load balancers may send to, without control planes that only stand in for workers.
	Workers func() []service.Member
	// MaxAge of what was observed of a network; 0: 20 s.
	MaxAge time.Duration
	Clock  clock.PassiveClock // nil: real time
}

// A Balancer makes load balancers in networks, whose ids are those of locations.
type Balancer struct {
	opts BalancerOptions

	account *account
	// refused are public addresses that CloudStack lists as free and refuses to associate.
	refused *refused.Set[string]

	mu       sync.Mutex
	observed map[string]*observed // by id of the network
	version  string               // of CloudStack; empty: not known yet
}

var _ cpi.Balancer = (*Balancer)(nil)

// NewBalancer returns a balancer.
func NewBalancer(opts BalancerOptions) *Balancer {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.MaxAge == 0 {
		opts.MaxAge = defaultMaxAge
	}
	if opts.Services == nil {
		opts.Services = func() []loadbalancer.Owner { return nil }
	}
	return &Balancer{
		opts:     opts,
		account:  newAccount(opts.Client, opts.Clock),
		refused:  refused.New[string](refused.Options{Now: opts.Clock.Now, Age: refusedAge, Most: mostRefused}),
		observed: map[string]*observed{},
	}
}

// at returns what is known of a network.
func (b *Balancer) at(network string) *observed {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.observed[network] == nil {
		b.observed[network] = &observed{balancer: b, id: network}
	}
	return b.observed[network]
}

// Plan implements [cpi.Balancer].
func (b *Balancer) Plan(ctx context.Context, network string, request cpi.PlanRequest) (loadbalancer.Plan, error) {
	var moved cpi.Moved
	if request.Moved != nil {
		moved = *request.Moved
	}
	var out loadbalancer.Plan
	err := b.at(network).view(ctx, request.Fresh, request.Want, func(s *state) {
		if request.Follow {
			out = followFor(s, request.Want)
			return
		}
		out = planFor(s, request.Want, moved.Addresses)
	})
	if err != nil {
		return loadbalancer.Plan{}, kindOf(err)
	}
	return out, nil
}

// Run implements [cpi.Balancer].
func (b *Balancer) Run(ctx context.Context, network string, s loadbalancer.Step) error {
	own, ok := s.(step)
	if !ok {
		return fmt.Errorf("%s is not a step for CloudStack: %w", s, loadbalancer.ErrRefused)
	}
	err := b.at(network).change(ctx, own)
	switch {
	case errors.Is(err, cloudstack.ErrNotFound): // what was observed has changed since
		return fmt.Errorf("%w: %w", loadbalancer.ErrBusy, err)
	case own.verb == associate && own.address != "" && cloudstack.RefusesObject(err):
		return b.notAssociated(own, err)
	}
	return kindOf(err)
}

// notAssociated returns what follows from an address that CloudStack does not associate: another one is chosen, unless the
// Service requests this one.
func (b *Balancer) notAssociated(s step, err error) error {
	if s.requested {
		return fmt.Errorf("%w: the requested address %s cannot be associated: request another one, or wait: %w",
			loadbalancer.ErrRefused, s.address, err)
	}
	b.refused.Add(s.address)
	return fmt.Errorf("%w, because another address must be chosen: %w", loadbalancer.ErrBusy, err)
}

// Owners implements [cpi.Balancer]: it returns those of the marks that name the cluster. What the original made has no
// mark, so it may be any cluster's.
func (b *Balancer) Owners(ctx context.Context, network string) ([]loadbalancer.Owner, error) {
	var out []loadbalancer.Owner
	absent := service.Desired{Desired: loadbalancer.Desired{Absent: true}}
	err := b.at(network).view(ctx, false, absent, func(s *state) {
		for _, m := range s.marks() {
			known := func(o loadbalancer.Owner) bool { return same(o, m.owner) }
			if m.owner.Cluster == b.opts.Cluster && !slices.ContainsFunc(out, known) {
				out = append(out, m.owner)
			}
		}
	})
	return out, kindOf(err)
}

// NameOf implements [cpi.Balancer].
func (*Balancer) NameOf(owner loadbalancer.Owner) string { return nameOf(owner) }

// Locate implements [cpi.Balancer]: it returns the id of a network by its name or id. As long as a network is not found,
// all Services that wait for it share what is listed.
func (b *Balancer) Locate(ctx context.Context, name string) (string, error) {
	all, err := b.account.networks.get(ctx, b.opts.MaxAge)
	if err != nil {
		return "", kindOf(err)
	}
	if name == "" {
		name = b.opts.Network
	}
	if name == "" {
		return b.defaultNetwork(ctx, all)
	}
	found := without(all, func(n cloudstack.Network) bool { return n.ID != name && n.Name != name })
	switch len(found) {
	case 0:
		return "", fmt.Errorf("network %q does not exist or is not visible to the user: correct cloud-config: %w", name,
			loadbalancer.ErrRefused)
	case 1:
		return found[0].ID, nil
	}
	return "", fmt.Errorf("%d networks have the name %q: use the ID in cloud-config: %w", len(found), name,
		loadbalancer.ErrRefused)
}

// defaultNetwork returns the id of the network where load balancers of the cluster stand already, also those that the
// original made, so that their addresses stay though nodes change. If there is none it is that of the nodes, and if
// there are several, the one of them that is.
func (b *Balancer) defaultNetwork(ctx context.Context, all []cloudstack.Network) (string, error) {
	rules, err := b.account.rules.get(ctx, b.opts.MaxAge)
	if err != nil {
		return "", kindOf(err)
	}
	occupied := networksOf(rules, b.opts.Cluster, b.opts.Services())
	used := without(all, func(n cloudstack.Network) bool {
		named := slices.Contains(b.opts.Networks, n.ID) || slices.Contains(b.opts.Networks, n.Name)
		return named || !occupied[n.ID]
	})
	if len(used) == 1 {
		return used[0].ID, nil
	}
	id, err := b.ofNodes(ctx, all)
	isThat := func(n cloudstack.Network) bool { return n.ID == id }
	if err == nil && len(used) > 0 && !slices.ContainsFunc(used, isThat) {
		return "", fmt.Errorf("load balancers of the cluster are in %d networks, but its nodes are in none of "+
			"them: set network in cloud-config: %w", len(used), loadbalancer.ErrRefused)
	}
	return id, err
}

// networksOf returns the ids of the networks where rules of a cluster stand: those that name it, and those that the
// original made for one of its Services.
func networksOf(rules []cloudstack.Rule, cluster string, services []loadbalancer.Owner) map[string]bool {
	occupied := map[string]bool{}
	for _, r := range rules {
		m, marked := parseMark(r.Description)
		inherited := func(o loadbalancer.Owner) bool { return inheritedBy(r, o) }
		if marked && m.owner.Cluster == cluster || slices.ContainsFunc(services, inherited) {
			occupied[r.NetworkID] = true
		}
	}
	return occupied
}

// ofNodes returns the id of the network in which all workers are: that of their default NICs, if they have it in
// common. If not all machines are shown, those of all workers have to be.
func (b *Balancer) ofNodes(ctx context.Context, all []cloudstack.Network) (string, error) {
	vms, partial := b.opts.Machines.VMs(ctx, b.opts.MaxAge)
	if partial != nil && !incomplete(partial) {
		return "", kindOf(partial)
	}
	common := map[string]int{}
	seen := 0
	var ids, names []string // networks, default NICs first
	machines := newIndex(vms)
	for _, member := range b.opts.Workers() {
		vm := machines.vmOf(member)
		switch {
		case vm == nil && partial != nil:
			return "", kindOf(partial)
		case vm == nil:
			continue
		}
		seen++
		for _, nic := range defaultFirst(vm.NICs) {
			if common[nic.NetworkID]++; !slices.Contains(ids, nic.NetworkID) {
				ids = append(ids, nic.NetworkID)
				names = append(names, nameIn(all, nic.NetworkID))
			}
		}
	}
	if seen == 0 {
		return onlyOf(all)
	}
	for _, id := range ids {
		if common[id] == seen {
			return id, nil
		}
	}
	return "", fmt.Errorf(
		"the worker nodes have no network in common (they are in %s): set network in cloud-config: %w",
		strings.Join(names, ", "), loadbalancer.ErrRefused)
}

// onlyOf returns the id of the network that the user sees, where there are no nodes to choose by.
func onlyOf(all []cloudstack.Network) (string, error) {
	if len(all) == 1 {
		return all[0].ID, nil
	}
	return "", fmt.Errorf("no machine of a worker node is visible yet; in a cluster without workers, set "+
		"network in cloud-config: %w", loadbalancer.ErrBusy)
}

func defaultFirst(nics []cloudstack.NIC) []cloudstack.NIC {
	out := slices.Clone(nics)
	slices.SortStableFunc(out, func(a, b cloudstack.NIC) int {
		switch {
		case a.IsDefault && !b.IsDefault:
			return -1
		case b.IsDefault && !a.IsDefault:
			return 1
		}
		return 0
	})
	return out
}

func nameIn(all []cloudstack.Network, id string) string {
	for _, n := range all {
		if n.ID == id {
			return n.Name
		}
	}
	return id
}
