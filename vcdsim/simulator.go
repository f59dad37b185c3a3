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

// A Config describes the simulation. The zero value is an empty VCD with profile Instant.
type Config struct {
	Model   store.Model
	Profile Profile // the zero value is Instant
	Seed    int64
	Clock   Clock  // nil means the wall clock
	Guest   Guest  // nil means that VMs only power on
	Addr    string // "" means 127.0.0.1:0
	// Listener, such as one in memory, replaces Addr. Start takes ownership of it. The certificate is also valid for
	// the names localhost and vcdsim.
	Listener net.Listener
	// Further are additional listeners, such as those in other network namespaces. Start takes ownership of them.
	Further []net.Listener
	// Cells is the number of servers; 0 means 1. If there are several, each has an address on a free port of the
	// loopback interface, and Addr is the address of a load balancer in front of them.
	Cells int
	// PublicURL is the base of hrefs, like VCD's public address. "" means the address of the request.
	PublicURL string
	// Authority signs the certificates of all servers. If it is nil, New creates one.
	Authority *Authority
	// Certificate replaces certificates signed by Authority. It is served unchanged for every address.
	Certificate *tls.Certificate
	// ControlToken is the token of the control API. If it is "", only callers on the same machine may use that API.
	ControlToken string
	Log          *slog.Logger
	Version      Version // "" means the newest
	// Assumptions are the assumptions about VCD; nil means the defaults.
	Assumptions *Assumptions
	// Observe, if set, is called with every exchange before its response is sent, concurrently from many goroutines.
	Observe func(Exchange)
	// TokenLifetime is the lifetime of an access token; 0 means one hour.
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

	addr         string
	server       *tlsserver.Server // at the site's address
	extraServers []*tlsserver.Server
	public       string // base of hrefs; "" means the address of the request
	cells        []*cells.Cell
	cancel       context.CancelFunc // ends the simulator's lifetime
}

// URL returns the address of the site, without /api. It is empty before Start.
func (s *Simulator) URL() string { return s.server.URL() }

// CA returns the PEM certificates of the authorities that signed the certificates of the site and its cells.
func (s *Simulator) CA() []byte {
	servers := []*tlsserver.Server{s.server}
	for _, c := range s.cells {
		if c.Server != nil {
			servers = append(servers, c.Server)
		}
	}
	return tlsserver.CAs(servers...)
}

// State returns a copy of everything in the simulator.
func (s *Simulator) State() store.State { return s.cloud.State() }

// Counters returns the number of requests by operation: the method and the path without IDs, and for queries the
// type.
func (s *Simulator) Counters() map[string]int { return s.journal.Counters() }

// ResetCounters sets all counters to zero.
func (s *Simulator) ResetCounters() { s.journal.Reset() }

// Requests returns the last requests, oldest first.
func (s *Simulator) Requests() []Request { return s.journal.List() }

// Unhandled returns the requested routes that the simulator does not have. A test should end with none.
func (s *Simulator) Unhandled() []string { return s.journal.UnknownRoutes() }

// Faults returns the fault rules.
func (s *Simulator) Faults() *Faults { return s.faults }

// Clock returns the simulator's clock.
func (s *Simulator) Clock() Clock { return s.cloud.Clock }

// ReportMembers stores whether pool members respond, by the URN of the pool, address and port. A real load balancer
// learns this from probes. Members without a report are up if they are enabled.
func (s *Simulator) ReportMembers(up map[string]map[netip.AddrPort]bool) {
	s.cloud.Mu.Lock()
	defer s.cloud.Mu.Unlock()
	s.cloud.Probed = maps.Clone(up)
}

// Cells returns the cells. The first is number 1.
func (s *Simulator) Cells() []*Cell { return append([]*cells.Cell(nil), s.cells...) }

// RenewCertificate replaces the certificate of the site's address and closes its connections. The new certificate is
// signed by the same authority or by a new one, which CA then returns.
func (s *Simulator) RenewCertificate(byNewAuthority bool) error {
	return s.server.Renew(byNewAuthority)
}

// ServeHTTP serves a request at the site's address with the cell that the load balancer picks.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	s.frontend.Serve(w, hr, nil, true) //nolint:contextcheck // the request has it
}

// SetGate sets the gate of the simulator; nil removes it. Requests that wait in the old gate continue to wait.
func (s *Simulator) SetGate(g Gate) { s.frontend.SetGate(g) }

// Dump writes everything that is simulated as JSON: the model, all entities, documents, metadata, access settings,
// API clients, sessions with their tokens, passwords, running tasks and leases, and the next IDs. Nothing is redacted:
// protect a dump like the passwords in it. It does not contain the simulator's configuration (profile, version,
// assumptions, cells), faults, counters or the request log.
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

// Restore replaces everything that is simulated by a dump, as restoring VCD's database does. Objects and sessions
// created since the dump are gone, and objects deleted since exist again. Time continues from now; tasks and leases
// that ended in the meantime end at once. IDs of lost objects are not reused. A clock that is behind the dump is moved
// to the time of the dump. An error leaves the simulator unchanged.
func (s *Simulator) Restore(r io.Reader) error { return dump.Restore(s.cloud, s.guests, r) }
