// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/login"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// A Session is one login, shared by all users of the same Config. It logs in again if necessary. It has a client for
// each noun.
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

	config    Config
	client    *api.Client
	transport *transport.Transport
	auth      *login.Authenticator
	user      *user
	lookups   *cache.Cache
	recent    *cache.Cache // cache of values that change often
}

// newSession returns a session that is not logged in yet.
func newSession(t *transport.Transport, config Config, opts PoolOptions) *Session {
	as := config.account()
	auth := login.New(t, as)
	lookups := cache.New(opts.LookupTTL, t.Site)
	recent := cache.New(min(allocatedAge, opts.LookupTTL), t.Site)
	c := api.New(auth, api.Scope{
		Base:     t.Site.Base,
		Org:      config.Org,
		Provider: as.IsProvider(),
	}, lookups)
	return &Session{
		VDCs:      &VDCs{client: c, lookups: lookups},
		Networks:  &Networks{client: c, lookups: lookups, recent: recent},
		Templates: &Templates{client: c, lookups: lookups},
		Inventory: newInventory(c, t.Site),
		VApps:     &VApps{client: c, lookups: lookups},
		VMs:       &VMs{client: c, clock: opts.Clock, documents: newDocuments(opts.Clock)},
		Disks:     &Disks{client: c},
		Affinity:  newAffinityRules(c, cache.New(min(opts.LookupTTL, affinityAge), t.Site)),
		Tasks:     newTasks(c, opts.Clock, opts.TaskPoll, t.Site.Metrics),
		Gateways:  &Gateways{client: c, lookups: lookups},
		Balancers: &Balancers{client: c},
		NAT:       &NAT{client: c},
		Firewall:  &Firewall{client: c},
		IPSpaces:  &IPSpaces{client: c},
		Entities:  &Entities{client: c, lookups: lookups},

		config:    config,
		client:    c,
		transport: t,
		auth:      auth,
		user:      &user{client: c, lookups: lookups},
		lookups:   lookups,
		recent:    recent,
	}
}

// Org returns the name of the organization that the session works in.
func (s *Session) Org() string { return s.config.Org }

// Site returns the address of the site, https://host[:port].
func (s *Session) Site() string { return s.transport.Site.Base }

// Refresh clears the caches, so that the next lookups query VCD.
func (s *Session) Refresh() {
	s.lookups.Clear()
	s.recent.Clear()
}

// close stops following tasks and logs out. A session that is used afterward logs in again.
func (s *Session) close(ctx context.Context) error {
	s.Tasks.stop()
	return s.auth.Close(ctx)
}

// WithMaxAge makes lookups in the context ignore cache entries that are older than age.
func WithMaxAge(ctx context.Context, age time.Duration) context.Context {
	return cache.WithMaxAge(ctx, age)
}
