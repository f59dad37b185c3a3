// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

var _ cpi.Searcher = (*Balancer)(nil)

// A sharedList caches a list for all callers.
type sharedList[T any] struct {
	clock clock.PassiveClock
	read  func(context.Context) ([]T, error)

	mu      sync.Mutex // held during requests: concurrent callers share one response
	started time.Time  // start of the request that returned the list
	list    []T
}

// get returns the list, with data that is at most maxAge old.
func (s *sharedList[T]) get(ctx context.Context, maxAge time.Duration) ([]T, error) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started.IsZero() && !s.started.Before(now.Add(-maxAge)) {
		return s.list, nil
	}
	started := s.clock.Now()
	list, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	s.started = started
	s.list = list
	return list, nil
}

// An account reads the objects that are visible to the user in all networks. All searches share its cached lists.
type account struct {
	networks  *sharedList[cloudstack.Network]
	rules     *sharedList[cloudstack.Rule]
	addresses *sharedList[cloudstack.Address]
	firewalls *sharedList[cloudstack.Firewall]
	acls      *sharedList[cloudstack.ACL]
}

func newAccount(client *cloudstack.Client, clock clock.PassiveClock) *account {
	return &account{
		networks: &sharedList[cloudstack.Network]{
			clock: clock,
			read: func(ctx context.Context) ([]cloudstack.Network, error) {
				return client.Networks(ctx, "")
			},
		},
		rules: &sharedList[cloudstack.Rule]{
			clock: clock,
			read: func(ctx context.Context) ([]cloudstack.Rule, error) {
				return client.Rules(ctx, "")
			},
		},
		addresses: &sharedList[cloudstack.Address]{clock: clock, read: client.AllAddresses},
		firewalls: &sharedList[cloudstack.Firewall]{
			clock: clock,
			read: func(ctx context.Context) ([]cloudstack.Firewall, error) {
				return client.Firewalls(ctx, "")
			},
		},
		acls: &sharedList[cloudstack.ACL]{
			clock: clock,
			read: func(ctx context.Context) ([]cloudstack.ACL, error) {
				return client.ACLs(ctx, "")
			},
		},
	}
}

// Search implements [cpi.Searcher].
func (b *Balancer) Search(ctx context.Context, owner loadbalancer.Owner, fresh bool) ([]string, error) {
	maxAge := b.opts.MaxAge
	if fresh {
		maxAge = 0
	}
	found := locations{}
	for _, find := range []func(context.Context, time.Duration, loadbalancer.Owner, *locations) error{
		b.account.findRules, b.account.findAddresses, b.account.findFirewalls, b.account.findACLs,
	} {
		if err := find(ctx, maxAge, owner, &found); err != nil {
			return nil, coreError(err)
		}
	}
	return found.ids, nil
}

// locations are distinct IDs of networks.
type locations struct{ ids []string }

func (l *locations) add(id string) {
	if id != "" && !slices.Contains(l.ids, id) {
		l.ids = append(l.ids, id)
	}
}

func (a *account) findRules(ctx context.Context, maxAge time.Duration, owner loadbalancer.Owner, to *locations) error {
	all, err := a.rules.get(ctx, maxAge)
	for _, r := range all {
		if ownedBy(r, owner) {
			to.add(r.NetworkID)
		}
	}
	return err
}

// findAddresses adds the networks of an owner's addresses. A VPC address without a network may be used in any tier.
func (a *account) findAddresses(ctx context.Context, maxAge time.Duration, owner loadbalancer.Owner, to *locations) error {
	all, err := a.addresses.get(ctx, maxAge)
	if err != nil {
		return err
	}
	for _, address := range all {
		m, marked := markerOf(address)
		switch {
		case !marked || !same(m.owner, owner):
		case address.NetworkID != "":
			to.add(address.NetworkID)
		default:
			tiers, err := a.networksMatching(ctx, maxAge, func(n cloudstack.Network) bool {
				return n.VPCID != "" && n.VPCID == address.VPCID
			})
			if err != nil {
				return err
			}
			if len(tiers) == 0 {
				return fmt.Errorf("the address %s of %s is in no network that is visible to the user: release it: %w",
					address.IPAddress, owner, loadbalancer.ErrRefused)
			}
			to.add(tiers[0])
		}
	}
	return nil
}

// findFirewalls adds the networks with firewall rules of an owner. A user whose networks have no firewall does not need
// the permission to list the rules.
func (a *account) findFirewalls(ctx context.Context, maxAge time.Duration, owner loadbalancer.Owner, to *locations) error {
	possible, err := a.networksMatching(ctx, maxAge, func(n cloudstack.Network) bool { return n.Has("Firewall") })
	if err != nil || len(possible) == 0 {
		return err
	}
	all, err := a.firewalls.get(ctx, maxAge)
	for _, f := range all {
		if m, marked := markerIn(f.Tags); marked && same(m.owner, owner) {
			to.add(f.NetworkID)
		}
	}
	return err
}

// findACLs adds the networks whose ACL list has a rule of an owner. A user without such networks does not need the
// permission to list the rules.
func (a *account) findACLs(ctx context.Context, maxAge time.Duration, owner loadbalancer.Owner, to *locations) error {
	possible, err := a.networksMatching(ctx, maxAge, func(n cloudstack.Network) bool { return n.ACLID != "" })
	if err != nil || len(possible) == 0 {
		return err
	}
	all, err := a.acls.get(ctx, maxAge)
	if err != nil {
		return err
	}
	for _, acl := range all {
		m, marked := parseMarker(acl.Reason)
		if !marked || !same(m.owner, owner) {
			continue
		}
		tiers, err := a.networksMatching(ctx, maxAge, func(n cloudstack.Network) bool { return n.ACLID == acl.ListID })
		if err != nil {
			return err
		}
		for _, tier := range tiers {
			to.add(tier)
		}
	}
	return nil
}

// networksMatching returns the sorted IDs of the networks for which fits returns true.
func (a *account) networksMatching(
	ctx context.Context, maxAge time.Duration, fits func(cloudstack.Network) bool,
) ([]string, error) {
	all, err := a.networks.get(ctx, maxAge)
	var ids []string
	for _, n := range all {
		if fits(n) {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids)
	return ids, err
}
