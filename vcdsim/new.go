// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/clock"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/control"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/entities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/firewalls"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/frontend"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/guests"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/journal"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/loadbalancing"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/tlsserver"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

const defaultLifetime = time.Hour

// New prepares a simulator. Start starts it.
func New(cfg Config) (*Simulator, error) {
	s := &Simulator{
		cloud:   newCloud(cfg),
		addr:    cmp.Or(cfg.Addr, "127.0.0.1:0"),
		faults:  faults.New(cfg.Seed),
		journal: journal.New(),
	}
	s.addParts(cfg)
	seed(s.cloud)
	if err := s.addCells(cfg); err != nil {
		return nil, err
	}
	s.cloud.Ctx, s.cancel = context.WithCancel(context.Background())
	s.addServing(cfg)
	return s, nil
}

// newCloud creates the simulated cloud without the parts that change it.
func newCloud(cfg Config) *cloud.Cloud {
	c := &cloud.Cloud{
		Clock:    cfg.Clock,
		Profile:  cfg.Profile,
		Log:      cfg.Log,
		Lifetime: cmp.Or(cfg.TokenLifetime, defaultLifetime),
		Store:    store.NewStore(cfg.Model.Clone()),
		IDs:      ids.New(cfg.Seed),
		Assume:   cloud.DefaultAssumptions(),
	}
	if c.Clock == nil {
		c.Clock = clock.NewClock(1)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Assumptions != nil {
		c.Assume = *cfg.Assumptions
	}
	return c
}

// addParts creates the parts of a simulator.
func (s *Simulator) addParts(cfg Config) {
	s.cloud.Unknown = s.journal.Unknown
	s.injector = &frontend.Injector{Cloud: s.cloud, Faults: s.faults, Named: namedCollections()}
	s.guests = guests.New(s.cloud, cfg.Guest)
	s.cloud.Guests = s.guests
	s.cloud.Tasks = &cloud.Tasks{
		Cloud:      s.cloud,
		Operations: operations(),
		Faults:     s.faults,
		Names:      s.injector.IDAndName,
	}
	s.cloud.Alarms = &cloud.Alarms{
		Cloud: s.cloud,
		Bells: map[string]func(store.Alarm){
			cloud.BellTask:  func(a store.Alarm) { s.cloud.Tasks.Finish(a.ID) },
			cloud.BellBoot:  s.guests.Ring,
			cloud.BellLease: func(a store.Alarm) { machines.LeasesOf(s.cloud).End(a.ID, a.End) },
		},
	}
}

// addServing creates the parts that serve requests. The cells must exist.
func (s *Simulator) addServing(cfg Config) {
	s.control = &control.Control{
		Cloud:       s.cloud,
		Guests:      s.guests,
		Faults:      s.faults,
		Journal:     s.journal,
		Cells:       s.cells,
		Site:        s.server,
		CA:          s.CA,
		Collections: collections(),
		Token:       cfg.ControlToken,
	}
	s.frontend = &frontend.Frontend{
		Cloud:    s.cloud,
		Journal:  s.journal,
		Injector: s.injector,
		Control:  s.control,
		Public:   s.public,
		Cells:    s.cells,
		Observer: cfg.Observe,
	}
	s.addRoutes()
}

// seed fills in the defaults of the model and creates the initial objects that it does not list.
func seed(c *cloud.Cloud) {
	c.IDs.Fill(&c.Store.Model)
	for i := range c.Store.Model.Orgs {
		entities.SeedDocuments(c, &c.Store.Model.Orgs[i])
	}
	vdcs.SeedPools(c)
	firewalls.SeedProfiles(c)
	loadbalancing.SeedBalancers(c)
	createFleets(c)
}

// addCells creates the cells and the addresses to listen on.
func (s *Simulator) addCells(cfg Config) error {
	signer, err := cfg.signer()
	if err != nil {
		return err
	}
	hosts, err := s.siteHosts(cfg.PublicURL)
	if err != nil {
		return err
	}
	if s.server, err = tlsserver.New(signer, cfg.Listener, hosts...); err != nil {
		return err
	}
	s.cloud.Chain = s.server.Chain
	if err := s.addListeners(signer, cfg.Further); err != nil {
		return err
	}
	for n := range max(cfg.Cells, 1) {
		c, err := cells.New(s.cloud, n+1, s.server, cmp.Or(cfg.Version, cells.Version106))
		if err != nil {
			return err
		}
		if cfg.Cells > 1 {
			if c.Server, err = tlsserver.New(signer, nil); err != nil {
				return err
			}
		}
		s.cells = append(s.cells, c)
	}
	return nil
}

// addListeners creates a server for each listener other than the site's.
func (s *Simulator) addListeners(signer *Authority, listeners []net.Listener) error {
	for _, listener := range listeners {
		host, _, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return fmt.Errorf("the address of a listener: %w", err)
		}
		server, err := tlsserver.New(signer, listener, host)
		if err != nil {
			return err
		}
		s.extraServers = append(s.extraServers, server)
	}
	return nil
}

// siteHosts returns the names of the site's certificate: the hosts of the listen address and of the public URL.
func (s *Simulator) siteHosts(publicURL string) ([]string, error) {
	host, _, err := net.SplitHostPort(s.addr)
	if err != nil {
		return nil, fmt.Errorf("the address %q: %w", s.addr, err)
	}
	if publicURL == "" {
		return []string{host}, nil
	}
	public, err := url.Parse(publicURL)
	if err != nil || public.Host == "" {
		return nil, fmt.Errorf("the public address %q is not a URL", publicURL)
	}
	s.public = "https://" + public.Host
	return []string{host, public.Hostname()}, nil
}

// Start listens and serves until Close.
func (s *Simulator) Start() error {
	if err := s.server.Open(s.cloud.Ctx, s.addr, s, s.cloud.Log); err != nil {
		return err
	}
	for _, f := range s.extraServers {
		if err := f.Open(s.cloud.Ctx, "", s, s.cloud.Log); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	for _, c := range s.cells {
		if c.Server == nil {
			continue
		}
		own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.frontend.Serve(w, r, c, false) //nolint:contextcheck // the request has it
		})
		if err := c.Server.Open(s.cloud.Ctx, "127.0.0.1:0", own, s.cloud.Log); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return nil
}

// Close stops the server and every guest.
func (s *Simulator) Close() error {
	s.cloud.Mu.Lock()
	s.cancel()
	s.cloud.Mu.Unlock()
	defer s.guests.Wait()
	err := s.server.Close()
	for _, f := range s.extraServers {
		err = errors.Join(err, f.Close())
	}
	for _, c := range s.cells {
		err = errors.Join(err, c.Server.Close())
	}
	return err
}
