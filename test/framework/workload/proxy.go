// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const dialTimeout = 10 * time.Second

// proxy is an HTTP proxy for CONNECT only. It connects control plane endpoints of simulated clusters with their
// listeners.
type proxy struct {
	resolve func(target string) (address string, err error)
	server  *http.Server
	address string

	lock  sync.Mutex
	conns map[net.Conn]struct{}
}

func startProxy(ctx context.Context, resolve func(string) (string, error)) (*proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the proxy: %w", err)
	}
	p := &proxy{resolve: resolve, address: listener.Addr().String(), conns: map[net.Conn]struct{}{}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: readHeaderTimeout, ErrorLog: silent}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// ServeHTTP opens a tunnel to a known endpoint.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "this proxy only opens tunnels to simulated clusters", http.StatusMethodNotAllowed)
		return
	}
	address, err := p.resolve(r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	defer cancel()
	remote, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		http.Error(w, fmt.Sprintf("dialing %s: %v", r.Host, err), http.StatusBadGateway)
		return
	}
	local, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = remote.Close()
		http.Error(w, "hijacking the connection is not possible", http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(local, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = errors.Join(local.Close(), remote.Close())
		return
	}
	p.tunnel(local, buffered, remote)
}

// tunnel copies in both directions until one side ends.
func (p *proxy) tunnel(local net.Conn, buffered io.Reader, remote net.Conn) {
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

func (p *proxy) track(conns ...net.Conn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
}

func (p *proxy) untrack(conns ...net.Conn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}

// close ends the proxy and its tunnels, which the server has lost sight of.
func (p *proxy) close() error {
	err := p.server.Close()
	p.lock.Lock()
	defer p.lock.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	return err
}
