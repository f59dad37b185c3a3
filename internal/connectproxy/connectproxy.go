// SPDX-License-Identifier: Apache-2.0

// Package connectproxy is an HTTP proxy for CONNECT requests. Tests use it in place of the proxies of users, and to
// reach simulated clusters.
package connectproxy

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 10 * time.Second
)

// ErrDenied is returned by [Options].Resolve for targets that the proxy does not allow.
var ErrDenied = errors.New("the proxy does not allow connections to this target")

// Options configure a proxy. The zero value opens tunnels to all targets for all users.
type Options struct {
	// User is the user name and password that the proxy requires. If it is nil, the proxy requires none.
	User *url.Userinfo
	// Resolve returns the address of a target, both with port. If it is nil, the address is the target.
	Resolve func(target string) (address string, err error)
	// Record enables the record of tunnels.
	Record bool
}

// A Tunnel is a connection that a client requested.
type Tunnel struct {
	Target string   // host and port, as requested by the client
	From   net.Addr // local address of the connection to the target
}

// A Proxy is a running proxy. Its methods are safe for concurrent use.
type Proxy struct {
	options Options
	server  *http.Server
	address string

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	tunnels []Tunnel
	refused int
}

// Start starts a proxy on a free port of the loopback interface.
func Start(ctx context.Context, o Options) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the proxy: %w", err)
	}
	p := &Proxy{options: o, address: listener.Addr().String(), conns: map[net.Conn]struct{}{}}
	p.server = &http.Server{
		Handler:           p,
		ReadHeaderTimeout: headerTimeout,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// Address returns the host and port of the proxy.
func (p *Proxy) Address() string { return p.address }

// URL returns the URL for the configuration of clients, including user name and password if the proxy requires them.
func (p *Proxy) URL() string {
	return (&url.URL{Scheme: "http", Host: p.address, User: p.options.User}).String()
}

// Tunnels returns the tunnels that were opened so far, if Record is set.
func (p *Proxy) Tunnels() []Tunnel {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.tunnels)
}

// Targets returns the targets of the recorded tunnels, sorted and without duplicates.
func (p *Proxy) Targets() []string {
	var targets []string
	for _, tunnel := range p.Tunnels() {
		targets = append(targets, tunnel.Target)
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// Refused returns the number of requests without the correct user name and password.
func (p *Proxy) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// Close stops the proxy and closes its tunnels, which the HTTP server no longer tracks.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	return err
}

// ServeHTTP opens a tunnel.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.allowed(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="proxy"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect {
		http.Error(w, "this proxy only opens tunnels", http.StatusMethodNotAllowed)
		return
	}
	remote, status, err := p.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	local, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = remote.Close()
		http.Error(w, "hijacking the connection is not possible", http.StatusInternalServerError)
		return
	}
	p.record(Tunnel{Target: r.Host, From: remote.LocalAddr()})
	if _, err := io.WriteString(local, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = errors.Join(local.Close(), remote.Close())
		return
	}
	p.copy(local, buffered, remote)
}

// allowed reports whether a request has the required user name and password, if any.
func (p *Proxy) allowed(r *http.Request) bool {
	user := p.options.User
	if user == nil {
		return true
	}
	password, _ := user.Password()
	known := "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
	if r.Header.Get("Proxy-Authorization") == known {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused++
	return false
}

// dial connects to a target. If it fails, it also returns the HTTP status of the response.
func (p *Proxy) dial(ctx context.Context, target string) (net.Conn, int, error) {
	address := target
	if p.options.Resolve != nil {
		var err error
		switch address, err = p.options.Resolve(target); {
		case errors.Is(err, ErrDenied):
			return nil, http.StatusForbidden, err
		case err != nil:
			return nil, http.StatusServiceUnavailable, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	remote, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, http.StatusBadGateway, fmt.Errorf("dialing %s: %w", target, err)
	}
	return remote, 0, nil
}

func (p *Proxy) record(t Tunnel) {
	if !p.options.Record {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tunnels = append(p.tunnels, t)
}

// copy copies data in both directions until one side closes, and then closes both.
func (p *Proxy) copy(local net.Conn, buffered io.Reader, remote net.Conn) {
	p.track(local, remote)
	defer p.untrack(local, remote)
	done := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(remote, buffered)
		done <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(local, remote)
		done <- struct{}{}
	}()
	<-done
}

func (p *Proxy) track(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
}

func (p *Proxy) untrack(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}
