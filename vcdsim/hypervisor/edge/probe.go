// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Members is the health of a pool's members.
type Members = map[netip.AddrPort]bool

// A probe checks one member with one kind of monitor.
type probe struct {
	pool    string
	network string
	monitor string
	at      netip.AddrPort
}

// prober probes all members of pools periodically.
type prober struct {
	wire Wire

	mu     sync.Mutex
	cancel map[probe]context.CancelFunc
	health map[probe]bool // missing if not probed yet
}

const (
	probeEvery   = time.Second
	probeTimeout = 2 * time.Second
	// downAfter is the number of consecutive failed probes after which a member is down.
	downAfter = 2
)

func newProber(wire Wire) *prober {
	return &prober{wire: wire, cancel: map[probe]context.CancelFunc{}, health: map[probe]bool{}}
}

func (r Route) probe(t Target) probe { return probe{r.Pool, r.Network, r.Monitor, t.At} }

// apply starts new probes and stops those of removed members.
func (p *prober) apply(ctx context.Context, routes []Route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := map[probe]bool{}
	for _, r := range routes {
		if r.Pool == "" {
			continue
		}
		for _, t := range r.Targets {
			wanted[r.probe(t)] = true
		}
	}
	for x, cancel := range p.cancel {
		if !wanted[x] {
			cancel()
			delete(p.cancel, x)
			delete(p.health, x)
		}
	}
	for x := range wanted {
		if p.cancel[x] == nil {
			probing, cancel := context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // apply calls it later
			p.cancel[x] = cancel
			go p.repeat(probing, x)
		}
	}
}

func (p *prober) repeat(ctx context.Context, x probe) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for missed := 0; ; {
		probeCtx, cancel := context.WithTimeout(ctx, probeTimeout)
		if x.check(probeCtx, p.wire) {
			missed = 0
		} else {
			missed++
		}
		cancel()
		p.set(ctx, x, missed)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *prober) set(ctx context.Context, x probe, missed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.health[x]
	if ctx.Err() == nil && (missed == 0 || missed >= downAfter || !known) {
		p.health[x] = missed == 0
	}
}

// check reports whether a member responds.
func (x probe) check(ctx context.Context, wire Wire) bool {
	if x.network == "udp" {
		return x.checkUDP(ctx, wire)
	}
	if x.monitor == "HTTP" {
		return x.checkHTTP(ctx, wire)
	}
	conn, err := wire.Dial(ctx, "tcp", x.at.String())
	if err != nil {
		return false
	}
	_ = conn.Close() // opened only to probe
	return true
}

// checkUDP considers a member down if its system refuses packets to the port.
func (x probe) checkUDP(ctx context.Context, wire Wire) bool {
	conn, err := wire.Dial(ctx, "udp", x.at.String())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // no longer used
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline.Add(-probeTimeout / 2)) // a new socket
	if _, err := conn.Write(nil); err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	return !errors.Is(err, syscall.ECONNREFUSED)
}

// checkHTTP expects a 2xx or 3xx status at the path /.
func (x probe) checkHTTP(ctx context.Context, wire Wire) bool {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return wire.Dial(ctx, "tcp", address)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+x.at.String()+"/", nil)
	if err != nil {
		return false
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close() // only the status counts
	return res.StatusCode >= http.StatusOK && res.StatusCode < http.StatusBadRequest
}

// up returns the targets that respond, including those without probes and those not probed yet.
func (p *prober) up(r Route) []Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Target
	for _, t := range r.Targets {
		if healthy, known := p.health[r.probe(t)]; healthy || !known {
			out = append(out, t)
		}
	}
	return out
}

// results returns the health of all probed members by pool. A member is up if all its probes succeed.
func (p *prober) results() map[string]Members {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]Members{}
	for x, up := range maps.All(p.health) {
		if out[x.pool] == nil {
			out[x.pool] = Members{}
		}
		before, probed := out[x.pool][x.at]
		out[x.pool][x.at] = up && (before || !probed)
	}
	return out
}
