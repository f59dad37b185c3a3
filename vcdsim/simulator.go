// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/control"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/dump"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/frontend"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/guests"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/journal"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/tlsserver"
)

// A Config describes what to simulate. The zero value is an empty VCD with profile Instant.
type Config struct {
	Model   store.Model
	Profile Profile // the zero value is Instant
	Seed    int64
	Clock   Clock  // nil is the wall clock
	Guest   Guest  // nil: a VM just powers on
	Addr    string // "" is 127.0.0.1:0
	// Listener is listened on instead of Addr, such as one in memory. Start takes it over; the certificate is also for
	// the names localhost and vcdsim.
	Listener net.Listener
	// Further are listened on as well, such as those in other network namespaces. Start takes them over.
	Further []net.Listener
	// Cells is the number of servers; 0 is 1. Of several each has an address of its own, on a free port of the loopback
	// interface, and Addr is that of a balancer before them.
	Cells int
	// PublicURL is the base of hrefs, like VCD's public address; "" is the address of the request.
	PublicURL string
	// Authority signs the certificates of all servers; nil makes a new one.
	Authority *Authority
	// Certificate is served as it is, whatever the address, instead of one that Authority signs.
	Certificate *tls.Certificate
	// ControlToken is the token of the control API; "" allows it to callers on the same machine only.
	ControlToken string
	Log          *slog.Logger
	Version      Version // "" is the newest
	// Assumptions, nil for the defaults.
	Assumptions *Assumptions
	// Observe, if set, is called with every exchange, before its answer is sent, from many goroutines.
	Observe func(Exchange)
	// TokenLifetime is how long an access token is valid; 0 is an hour.
	TokenLifetime time.Duration
}

// A Simulator is one simulated VCD. Its methods may be called from any goroutine.
type Simulator struct {
	cloud    *cloud.Cloud
	guests   *guests.Guests
	faults   *faults.Faults
	journal  *journal.Journal
	frontend *frontend.Frontend
	injector *frontend.Injector
	control  *control.Control

	addr    string
	server  *tlsserver.Server // at the site's address
	further []*tlsserver.Server
	public  string // base of hrefs; "" is the address of the request
	cells   []*cells.Cell
	cancel  context.CancelFunc // ends the simulator's lifetime
}

// URL is the address of the site, without /api. It is empty before Start.
func (s *Simulator) URL() string { return s.server.URL() }

// CA is the PEM certificate of the authority that signed the site's; of several when they differ from cell to cell.
func (s *Simulator) CA() []byte {
	servers := []*tlsserver.Server{s.server}
	for _, c := range s.cells {
		if c.Server != nil {
			servers = append(servers, c.Server)
		}
	}
	return tlsserver.CAs(servers...)
}

// State returns a copy of everything.
func (s *Simulator) State() store.State { return s.cloud.State() }

// Counters counts the requests by operation: method and path without ids, for queries with the type.
func (s *Simulator) Counters() map[string]int { return s.journal.Counters() }

// ResetCounters sets all counters to zero.
func (s *Simulator) ResetCounters() { s.journal.Reset() }

// Requests returns the last requests, oldest first.
func (s *Simulator) Requests() []Request { return s.journal.List() }

// Unhandled returns the routes that were asked for and do not exist here. A test should end with none.
func (s *Simulator) Unhandled() []string { return s.journal.UnknownRoutes() }

// Faults returns the fault rules.
func (s *Simulator) Faults() *Faults { return s.faults }

// Clock returns the simulator's clock.
func (s *Simulator) Clock() Clock { return s.cloud.Clock }

// ReportMembers stores which members of pools answer, by the URN of the pool, address and port, as probes of a real
// load balancer find out. Members that nothing was reported of are up if they are enabled.
func (s *Simulator) ReportMembers(up map[string]map[netip.AddrPort]bool) {
	s.cloud.Mu.Lock()
	defer s.cloud.Mu.Unlock()
	s.cloud.Probed = maps.Clone(up)
}

// Cells returns the cells, the first being number 1.
func (s *Simulator) Cells() []*Cell { return append([]*cells.Cell(nil), s.cells...) }

// RenewCertificate gives the site's address a new certificate, signed by the same authority or by a new one, which CA
// then returns, and drops the connections it has.
func (s *Simulator) RenewCertificate(byNewAuthority bool) error {
	return s.server.Renew(byNewAuthority)
}

// ServeHTTP answers a request at the site's address, by the cell that the balancer picks.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	s.frontend.Serve(w, hr, nil, true) //nolint:contextcheck // the request has it
}

// SetGate sets the gate of the simulator; nil removes it. Requests that are held stay held.
func (s *Simulator) SetGate(g Gate) { s.frontend.SetGate(g) }

// Dump writes everything that is simulated as JSON: the model, all entities, documents, metadata, access settings, API
// clients, sessions with their tokens, passwords, running tasks and leases, and the next ids. Nothing is redacted: keep
// it as safe as the passwords in it. It does not contain the simulator's configuration (profile, version, assumptions,
// cells), faults, counters or the request log.
func (s *Simulator) Dump(w io.Writer) error {
	encoded, err := dump.Encode(s.cloud)
	if err != nil {
		return err
	}
	if _, err := w.Write(encoded); err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	return nil
}

// Restore replaces everything that is simulated by a dump, as restoring VCD's database does: what was made
// since is gone, its sessions too, what was deleted is back, and the time goes on from now; tasks and leases that ended
// meanwhile end at once. Ids of what is lost are not given again. A clock that is behind the dump is moved to its time.
// On an error nothing has changed.
func (s *Simulator) Restore(r io.Reader) error { return dump.Restore(s.cloud, s.guests, r) }
