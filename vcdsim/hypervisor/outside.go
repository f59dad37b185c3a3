// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor/edge"
)

// Outside returns an HTTP proxy for a loopback address of the machine. Its connections start in the namespace of the
// edge gateways, and it resolves names with the DNS there. Programs select it in their settings (curl --proxy,
// HTTPS_PROXY), so that the network of the machine does not change.
func (h *Hypervisor) Outside() http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {}, // the request contains its target
		Transport: &http.Transport{DialContext: h.dialByName, DisableKeepAlives: true},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			h.tunnel(w, r)
		case r.URL.IsAbs():
			forward.ServeHTTP(w, r)
		default:
			http.Error(w, "this is an HTTP proxy to the networks of the simulated VMs", http.StatusBadRequest)
		}
	})
}

// dialByName connects to an address, or to a name that the DNS of the VMs' networks resolves.
func (h *Hypervisor) dialByName(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("the address %s: %w", address, err)
	}
	if found, ok := h.hub.names.lookup(host); ok && len(found) > 0 {
		address = net.JoinHostPort(found[0].String(), port)
	}
	return h.hub.Dial(ctx, network, address)
}

// tunnel connects a client with the target of CONNECT.
func (h *Hypervisor) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := h.dialByName(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = target.Close() // nothing was sent
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = client.Close() }() // both directions ended
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = target.Close() // the client disconnected
		return
	}
	edge.Join(r.Context(), hijacked{client, buffered}, target)
}

// hijacked is a connection whose first bytes may already have been read.
type hijacked struct {
	net.Conn

	reader io.Reader
}

// Read implements net.Conn.
func (c hijacked) Read(p []byte) (int, error) { return c.reader.Read(p) }

// CloseWrite closes the write side of the connection.
func (c hijacked) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
