// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

// A Wire opens sockets in the namespace of the gateways.
type Wire interface {
	Listen(l Listener) (net.Listener, error)
	ListenPacket(l Listener) (net.PacketConn, error)
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// A Proxy serves routes. Apply may be called at any time; it does not interrupt open connections.
type Proxy struct {
	wire   Wire
	log    *slog.Logger
	prober *prober

	mu      sync.Mutex
	servers map[Listener]*server
}

// New creates a proxy without routes.
func New(wire Wire, log *slog.Logger) *Proxy {
	return &Proxy{wire: wire, log: log, prober: newProber(wire), servers: map[Listener]*server{}}
}

// Apply replaces the routes. If a listener cannot be opened, the next call retries it.
func (p *Proxy) Apply(ctx context.Context, routes []Route) {
	p.prober.apply(ctx, routes)
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, s := range p.servers {
		if !slices.ContainsFunc(routes, func(r Route) bool { return r.Listener == at }) {
			s.close()
			delete(p.servers, at)
			p.log.Info("An address is no longer served", "network", at.Network, "address", at.At)
		}
	}
	for _, r := range routes {
		if s := p.servers[r.Listener]; s != nil {
			s.set(r)
			continue
		}
		s, err := p.open(ctx, r)
		if err != nil {
			p.log.Error("Serving an address", "name", r.Name, "address", r.At, "error", err)
			continue
		}
		p.servers[r.Listener] = s
		p.log.Info("An address is served", "name", r.Name, "network", r.Network, "address", r.At)
	}
}

// Health returns the results of the probes, by pool and member.
func (p *Proxy) Health() map[string]Members { return p.prober.results() }

// Close ends all listeners, connections and probes.
func (p *Proxy) Close() {
	p.Apply(context.Background(), nil)
}

// A server serves one listener.
type server struct {
	proxy  *Proxy
	close  func()
	active sync.Map // number of connections by Target address, *counter

	mu    sync.Mutex
	route Route
	next  int
}

func (p *Proxy) open(ctx context.Context, r Route) (*server, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &server{proxy: p, route: r}
	if r.Network == "udp" {
		conn, err := p.wire.ListenPacket(r.Listener)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("listening: %w", err)
		}
		s.close = func() { cancel(); _ = conn.Close() } // read only
		go s.servePackets(ctx, conn)
		return s, nil
	}
	listener, err := p.wire.Listen(r.Listener)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("listening: %w", err)
	}
	s.close = func() { cancel(); _ = listener.Close() } // nothing is lost
	go s.accept(ctx, listener)
	return s, nil
}

func (s *server) set(r Route) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.route = r
}

const acceptPause = 100 * time.Millisecond

func (s *server) accept(ctx context.Context, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open files, or the client disconnected
			select {
			case <-ctx.Done():
				return
			case <-time.After(acceptPause):
			}
		default:
			go s.serve(ctx, conn)
		}
	}
}

const dialTimeout = 5 * time.Second

// serve connects a client to the first target that accepts the connection. Without one, it disconnects the client.
func (s *server) serve(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }() // both directions ended
	for _, t := range s.order() {
		dialing, cancel := context.WithTimeout(ctx, dialTimeout)
		target, err := s.proxy.wire.Dial(dialing, "tcp", t.At.String())
		cancel()
		if err != nil {
			continue
		}
		done := s.count(t)
		Join(ctx, client, target)
		done()
		return
	}
}

// order returns the targets that are up, in the order in which to try them: the selected one first.
func (s *server) order() []Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	up := s.proxy.prober.up(s.route)
	if len(up) == 0 {
		return nil
	}
	first := 0
	if s.route.Least {
		for i, t := range up {
			if s.connections(t)*up[first].Weight < s.connections(up[first])*t.Weight {
				first = i
			}
		}
	} else {
		first = byWeight(up, s.next)
	}
	s.next++
	return append(slices.Clone(up[first:]), up[:first]...)
}

// byWeight returns the index of the target for connection number n.
func byWeight(targets []Target, n int) int {
	sum := 0
	for _, t := range targets {
		sum += t.Weight
	}
	n %= sum
	for i, t := range targets {
		if n -= t.Weight; n < 0 {
			return i
		}
	}
	return 0
}
