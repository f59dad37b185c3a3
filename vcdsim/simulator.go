package vcdsim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/route"
)

// A Config says what to simulate. The zero value is an empty VCD with profile Instant.
type Config struct {
	Model   Model
	Profile Profile // the zero value is Instant
	Seed    int64
	Clock   Clock  // nil is the wall clock
	Guest   Guest  // nil: a VM just powers on
	Addr    string // "" is 127.0.0.1:0
	// Listener is listened on instead of Addr, such as one in memory. Start takes it over; the certificate is also for the
	// names localhost and vcdsim.
	Listener net.Listener
	Log      *slog.Logger
	Version  Version // "" is the newest
	// Assumptions, nil for the defaults.
	Assumptions *Assumptions
	// TokenLifetime is how long an access token is good for; 0 is an hour.
	TokenLifetime time.Duration
}

// A Simulator is one simulated VCD. Its methods may be called from any goroutine.
type Simulator struct {
	clock    Clock
	profile  Profile
	guest    Guest
	log      *slog.Logger
	addr     string
	lifetime time.Duration
	versions []string
	routes   route.Table[endpoint]
	certs    *certificates
	faults   *Faults
	journal  *journal
	gate     atomic.Pointer[Gate]

	operations map[string]operation
	bells      map[string]func(*Simulator, alarm)

	listener net.Listener
	server   *http.Server
	ctx      context.Context //nolint:containedctx // the simulator's lifetime, for its guests
	cancel   context.CancelFunc
	guests   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	store   *store
	ids     *ids
	assume  Assumptions
	pending []func() // run when the request at hand is answered
	boots   map[string]context.CancelFunc
	queues  map[string]chan struct{} // of each VM's guest: closed when the last call ended
}

const defaultLifetime = time.Hour

// New prepares a simulator; Start makes it listen.
func New(cfg Config) (*Simulator, error) {
	versions, err := cfg.Version.list()
	if err != nil {
		return nil, err
	}
	certs, err := newCertificates()
	if err != nil {
		return nil, err
	}
	model := cfg.Model.clone()
	s := &Simulator{
		clock: cfg.Clock, profile: cfg.Profile, guest: cfg.Guest, log: cfg.Log, addr: cfg.Addr, lifetime: cfg.TokenLifetime,
		versions: versions, certs: certs, faults: &Faults{}, journal: newJournal(), operations: operations(), bells: bells(), store: newStore(model), ids: newIDs(cfg.Seed),
		assume: DefaultAssumptions(), boots: map[string]context.CancelFunc{}, queues: map[string]chan struct{}{},
	}
	s.ids.fill(&s.store.model)
	for i := range s.store.model.Orgs {
		s.seedDocuments(&s.store.model.Orgs[i])
	}
	s.setDefaults(cfg)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.addRoutes()
	return s, nil
}

func (s *Simulator) setDefaults(cfg Config) {
	s.listener = cfg.Listener
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

// Start listens and serves until Close.
func (s *Simulator) Start() error {
	if s.listener == nil {
		listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", s.addr)
		if err != nil {
			return fmt.Errorf("listening on %s: %w", s.addr, err)
		}
		s.listener = listener
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true) // as VCD; a dropped connection is then one request's
	s.server = &http.Server{
		Protocols: &protocols,
		Handler:   s, TLSConfig: s.certs.tls(), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := s.server.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("Serving stopped", "error", err)
		}
	}()
	return nil
}

// Close stops the server and every guest.
func (s *Simulator) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	defer s.guests.Wait()
	if s.server == nil {
		return nil
	}
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("closing the server: %w", err)
	}
	return nil
}

// URL is the address of the site, without /api. It is empty before Start.
func (s *Simulator) URL() string {
	if s.listener == nil {
		return ""
	}
	return "https://" + s.listener.Addr().String()
}

// CA is the PEM certificate that signed the server's.
func (s *Simulator) CA() []byte { return s.certs.ca }

// State returns a copy of everything.
func (s *Simulator) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.snapshot()
}

// Counters counts the requests by operation: method and path without ids, for queries with the type.
func (s *Simulator) Counters() map[string]int { return s.journal.counters() }

// ResetCounters sets all counters to zero.
func (s *Simulator) ResetCounters() { s.journal.reset() }

// Requests returns the last requests, oldest first.
func (s *Simulator) Requests() []Request { return s.journal.list() }

// Unhandled returns the routes that were asked for and do not exist here. A test should end with none.
func (s *Simulator) Unhandled() []string { return s.journal.unknownRoutes() }

// Faults returns the fault rules.
func (s *Simulator) Faults() *Faults { return s.faults }

// Clock returns the simulator's clock.
func (s *Simulator) Clock() Clock { return s.clock }

// settle does what was put off until the answer was made.
func (s *Simulator) settle() {
	for len(s.pending) > 0 {
		next := s.pending[0]
		s.pending = s.pending[1:]
		next()
	}
}
