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

// BalancerOptions configure a [Balancer].
type BalancerOptions struct {
	Client *cloudstack.Client
	// Machines finds the virtual machines of members.
	Machines *Machines
	// Cluster is the ID of the cluster.
	Cluster string
	// Network is the network of load balancers whose Service requests none, by name or ID. If it is empty, it is the
	// network with load balancers of the cluster, or else the network of the nodes.
	Network string
	// Networks are the other networks in the configuration, by name or ID.
	Networks []string
	// Services returns the owners of the cluster's load balancers. Their objects may have been created by the original
	// controller. Nil means that there are none.
	Services func() []loadbalancer.Owner
	// Workers returns the Nodes that load balancers may send to, without control planes that only substitute for
	// workers.
	Workers func() []service.Member
	// MaxAge of the cached state of a network; 0 means 20 s.
	MaxAge time.Duration
	Clock  clock.PassiveClock // nil: real time
}

// A Balancer implements load balancers in networks. The IDs of its locations are those of the networks.
type Balancer struct {
	opts BalancerOptions

	account *account
	// refused are the public addresses that CloudStack lists as free but refuses to associate.
	refused *refused.Set[string]

	mu       sync.Mutex
	observed map[string]*observed // by network ID
	version  string               // of CloudStack; empty: not read yet
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
		refused:  refused.New[string](refused.Options{Now: opts.Clock.Now, Age: refusedAge, Most: maxRefused}),
		observed: map[string]*observed{},
	}
}

// at returns the cached state of a network.
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
	newList := ""
	if request.Moved != nil {
		moved = *request.Moved
		newList = b.at(moved.Location).aclList()
	}
	var out loadbalancer.Plan
	err := b.at(network).view(ctx, request.Fresh, request.Want, func(s *state) {
		if request.Follow {
			out = followFor(s, request.Want)
			return
		}
		if s.network.ACLID != newList {
			moved.Desired.Ports = nil // The rules in this ACL list open nothing at the new location.
		}
		out = planFor(s, request.Want, moved)
	})
	if err != nil {
		return loadbalancer.Plan{}, coreError(err)
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
	case errors.Is(err, cloudstack.ErrNotFound): // the observed object was deleted in the meantime
		return fmt.Errorf("%w: %w", loadbalancer.ErrBusy, err)
	case own.verb == associate && own.address != "" && cloudstack.RefusesObject(err):
		return b.notAssociated(own, err)
	}
	return coreError(err)
}

// notAssociated returns the error for an address that CloudStack refuses to associate. The next plan chooses another
// address, unless the Service requests this one.
func (b *Balancer) notAssociated(s step, err error) error {
	if s.requested {
		return fmt.Errorf("%w: the requested address %s cannot be associated: request another one, or wait: %w",
			loadbalancer.ErrRefused, s.address, err)
	}
	b.refused.Add(s.address)
	return fmt.Errorf("%w, because another address must be chosen: %w", loadbalancer.ErrBusy, err)
}

// Owners implements [cpi.Balancer]: it returns the owners in those markers that name the cluster. Objects of the
// original controller have no marker, so they may belong to any cluster.
func (b *Balancer) Owners(ctx context.Context, network string) ([]loadbalancer.Owner, error) {
	var out []loadbalancer.Owner
	absent := service.Desired{Desired: loadbalancer.Desired{Absent: true}}
	err := b.at(network).view(ctx, false, absent, func(s *state) {
		for _, m := range s.markers() {
			known := func(o loadbalancer.Owner) bool { return same(o, m.owner) }
			if m.owner.Cluster == b.opts.Cluster && !slices.ContainsFunc(out, known) {
				out = append(out, m.owner)
			}
		}
	})
	return out, coreError(err)
}

// NameOf implements [cpi.Balancer].
func (*Balancer) NameOf(owner loadbalancer.Owner) string { return nameOf(owner) }

// Locate implements [cpi.Balancer]: it returns the ID of a network by its name or ID. While a network is not found, all
// waiting Services share one cached list.
func (b *Balancer) Locate(ctx context.Context, name string) (string, error) {
	all, err := b.account.networks.get(ctx, b.opts.MaxAge)
	if err != nil {
		return "", coreError(err)
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

// defaultNetwork returns the ID of the network where the cluster already has load balancers, also of the original
// controller, so that their addresses remain although nodes change. If there is no such network, it returns the network
// of the nodes. If there are several, the network of the nodes must be one of them.
func (b *Balancer) defaultNetwork(ctx context.Context, all []cloudstack.Network) (string, error) {
	rules, err := b.account.rules.get(ctx, b.opts.MaxAge)
	if err != nil {
		return "", coreError(err)
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
		return "", fmt.Errorf("load balancers of the cluster are in %d networks, but its nodes are in none of them: set network in cloud-config: %w", len(used), loadbalancer.ErrRefused)
	}
	return id, err
}

// networksOf returns the IDs of the networks with rules of a cluster: rules whose marker names the cluster, and rules
// that the original controller created for one of its Services.
func networksOf(rules []cloudstack.Rule, cluster string, services []loadbalancer.Owner) map[string]bool {
	occupied := map[string]bool{}
	for _, r := range rules {
		m, marked := parseMarker(r.Description)
		inherited := func(o loadbalancer.Owner) bool { return inheritedBy(r, o) }
		if marked && m.owner.Cluster == cluster || slices.ContainsFunc(services, inherited) {
			occupied[r.NetworkID] = true
		}
	}
	return occupied
}

// ofNodes returns the ID of the network that all workers share, preferably that of their default NICs. If not all
// machines are visible, those of all workers must be.
func (b *Balancer) ofNodes(ctx context.Context, all []cloudstack.Network) (string, error) {
	vms, partial := b.opts.Machines.VMs(ctx, b.opts.MaxAge)
	if partial != nil && !incomplete(partial) {
		return "", coreError(partial)
	}
	common := map[string]int{}
	seen := 0
	var ids, names []string // networks, default NICs first
	machines := newIndex(vms)
	for _, member := range b.opts.Workers() {
		vm := machines.vmOf(member)
		switch {
		case vm == nil && partial != nil:
			return "", coreError(partial)
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

// onlyOf returns the ID of the only visible network, if there are no nodes to choose by.
func onlyOf(all []cloudstack.Network) (string, error) {
	if len(all) == 1 {
		return all[0].ID, nil
	}
	return "", fmt.Errorf("no machine of a worker node is visible yet; in a cluster without workers, set network in cloud-config: %w", loadbalancer.ErrBusy)
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
