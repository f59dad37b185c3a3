// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"strings"
)

// A Session is one login, shared by all users of the same Config. It logs in again by itself. What it offers is grouped
// by noun.
type Session struct {
	VDCs      *VDCs
	Networks  *Networks
	Templates *Templates
	Inventory *Inventory
	VApps     *VApps
	VMs       *VMs
	Disks     *Disks
	Affinity  *AffinityRules
	Tasks     *Tasks
	Gateways  *Gateways
	Balancers *Balancers
	NAT       *NAT
	Firewall  *Firewall
	IPSpaces  *IPSpaces
	Entities  *Entities

	client *client
}

// newSession returns a session that is not logged in yet.
func newSession(t *transport, config Config, opts PoolOptions) *Session {
	org, _ := config.identity()
	c := &client{
		auth:     newAuthenticator(t, config),
		site:     t.site,
		config:   config,
		opts:     opts,
		provider: isSystem(org),
		lookups:  newCache(opts.LookupTTL, opts.Clock),
		recent:   newCache(min(allocatedAge, opts.LookupTTL), opts.Clock),
	}
	return &Session{
		VDCs:      &VDCs{client: c},
		Networks:  &Networks{client: c},
		Templates: &Templates{client: c},
		Inventory: &Inventory{client: c, vdcs: map[string]*inventory{}},
		VApps:     &VApps{client: c},
		VMs:       &VMs{client: c, documents: newDocuments(opts.Clock)},
		Disks:     &Disks{client: c},
		Affinity:  newAffinityRules(c),
		Tasks:     &Tasks{client: c, followed: map[string]*followedTask{}, usual: durations{}},
		Gateways:  &Gateways{client: c},
		Balancers: &Balancers{client: c},
		NAT:       &NAT{client: c},
		Firewall:  &Firewall{client: c},
		IPSpaces:  &IPSpaces{client: c},
		Entities:  &Entities{client: c},
		client:    c,
	}
}

func isSystem(org string) bool { return strings.EqualFold(org, systemOrg) }

// Org returns the name of the organization that the session works in.
func (s *Session) Org() string { return s.client.config.Org }

// Site returns the address of the site, https://host[:port].
func (s *Session) Site() string { return s.client.site.base }

// Refresh drops the results of look-ups, so that the next ones ask VCD.
func (s *Session) Refresh() {
	s.client.lookups.clear()
	s.client.recent.clear()
}

// close stops following tasks and logs out. A session that is still used logs in again.
func (s *Session) close(ctx context.Context) error {
	s.Tasks.stop()
	return s.client.auth.close(ctx)
}

func (s *Session) measure(state *siteState) {
	now := s.client.opts.Clock.Now()
	s.client.auth.measure(state, now)
	state.tasks += s.Tasks.running()
	if age, ok := s.Inventory.age(now); ok {
		state.inventoried = true
		state.inventoryAge = max(state.inventoryAge, age)
	}
}
