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

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/tlsserver"
)

const defaultLifetime = time.Hour

// New prepares a simulator; Start makes it listen.
func New(cfg Config) (*Simulator, error) {
	versions, err := cfg.Version.list()
	if err != nil {
		return nil, err
	}
	model := cfg.Model.Clone()
	s := &Simulator{
		clock:    cfg.Clock,
		profile:  cfg.Profile,
		log:      cfg.Log,
		addr:     cfg.Addr,
		lifetime: cfg.TokenLifetime,
		faults:   newFaults(cfg.Seed),
		journal:  newJournal(),
		store:    store.NewStore(model),
		ids:      ids.New(cfg.Seed),
		assume:   DefaultAssumptions(),
	}
	s.addParts(cfg)
	s.ids.Fill(&s.store.Model)
	for i := range s.store.Model.Orgs {
		seedDocuments(s, &s.store.Model.Orgs[i])
	}
	seedProfiles(s)
	seedBalancers(s)
	s.setDefaults(cfg)
	launch(s)
	if err := s.addCells(cfg, versions); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.frontend.addRoutes()
	return s, nil
}

// addParts makes the parts of a simulator.
func (s *Simulator) addParts(cfg Config) {
	s.frontend = &frontend{sim: s, observer: cfg.Observe}
	s.injector = &injector{s}
	s.control = &control{s, cfg.ControlToken}
	s.tasks = &tasks{s, operations()}
	s.alarms = &alarms{s, bells()}
	s.leases = &leases{s}
	s.guests = &guests{
		sim:    s,
		guest:  cfg.Guest,
		boots:  map[string]context.CancelFunc{},
		queues: map[string]chan struct{}{},
	}
	s.vapps = &vapps{s}
	s.vms = &vms{s}
	s.ipam = &ipam{s}
	s.edges = &edgeGateways{s}
	s.spaces = &ipSpaces{s}
	s.alb = &loadBalancing{sim: s}
}

func (s *Simulator) setDefaults(cfg Config) {
	if s.clock == nil {
		s.clock = NewClock(1)
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.addr == "" {
		s.addr = "127.0.0.1:0"
	}
	if s.lifetime == 0 {
		s.lifetime = defaultLifetime
	}
	if cfg.Assumptions != nil {
		s.assume = *cfg.Assumptions
	}
}

// addCells makes the cells, and the addresses to listen on.
func (s *Simulator) addCells(cfg Config, versions []string) error {
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
	if err := s.addListeners(signer, cfg.Further); err != nil {
		return err
	}
	for n := range max(cfg.Cells, 1) {
		c := newCell(s, n+1, cmp.Or(cfg.Version, Version106), versions)
		if cfg.Cells > 1 {
			if c.server, err = tlsserver.New(signer, nil); err != nil {
				return err
			}
		}
		s.cells = append(s.cells, c)
	}
	return nil
}

// addListeners makes a server for each listener beside the site's address.
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
		s.further = append(s.further, server)
	}
	return nil
}

// siteHosts are the names of the site's certificate: of the address to listen on, and of the public one.
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
	if err := s.server.Open(s.ctx, s.addr, s, s.log); err != nil {
		return err
	}
	for _, f := range s.further {
		if err := f.Open(s.ctx, "", s, s.log); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	for _, c := range s.cells {
		if c.server == nil {
			continue
		}
		own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.frontend.serve(w, r, c, false) //nolint:contextcheck // the request has it
		})
		if err := c.server.Open(s.ctx, "127.0.0.1:0", own, s.log); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return nil
}

// Close stops the server and every guest.
func (s *Simulator) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	defer s.guests.running.Wait()
	err := s.server.Close()
	for _, f := range s.further {
		err = errors.Join(err, f.Close())
	}
	for _, c := range s.cells {
		err = errors.Join(err, c.server.Close())
	}
	return err
}
