// SPDX-License-Identifier: Apache-2.0

// Package tlsserver serves HTTP/1.1 over TLS at an address. The certificate can be renewed while the server is running.
// The package does not know the content that it serves.
package tlsserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Server listens on one address. Its methods may be called from any goroutine. URL and Close of a nil Server are
// no-ops.
type Server struct {
	hosts    []string
	listener net.Listener
	server   *http.Server

	mu     sync.Mutex
	signer *Authority
	cert   *tls.Certificate
	conns  map[net.Conn]bool
}

// New prepares a server for the loopback addresses and additional hosts. If listener is not nil, it replaces the
// address.
func New(signer *Authority, listener net.Listener, hosts ...string) (*Server, error) {
	s := &Server{hosts: hosts, listener: listener, conns: map[net.Conn]bool{}}
	return s, s.use(signer)
}

// Renew replaces the certificate and closes all connections. The new certificate is signed by the same authority or by
// a new one.
func (s *Server) Renew(byNewAuthority bool) error {
	s.mu.Lock()
	signer := s.signer
	s.mu.Unlock()
	if byNewAuthority {
		fresh, err := NewAuthority()
		if err != nil {
			return err
		}
		signer = fresh
	}
	return s.use(signer)
}

func (s *Server) use(signer *Authority) error {
	cert, err := signer.issue(s.hosts...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.signer = signer
	s.cert = cert
	s.mu.Unlock()
	s.Drop()
	return nil
}

// Drop closes all connections.
func (s *Server) Drop() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // it may already be closed
	}
}

func (s *Server) track(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.conns[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(s.conns, c)
	default:
	}
}

func (s *Server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cert, nil
}

// Open listens, unless the server already has a listener, and serves until Close.
func (s *Server) Open(ctx context.Context, addr string, h http.Handler, log *slog.Logger) error {
	if s.listener == nil {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("listening on %s: %w", addr, err)
		}
		s.listener = listener
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true) // like VCD; a dropped connection then affects one request
	s.server = &http.Server{
		Protocols:         &protocols,
		Handler:           h,
		ConnState:         s.track,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := s.server.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			log.Error("Serving stopped", "error", err)
		}
	}()
	return nil
}

// URL returns the address. It is empty before Open.
func (s *Server) URL() string {
	if s == nil || s.listener == nil {
		return ""
	}
	return "https://" + s.listener.Addr().String()
}

// Close stops the server and closes its connections.
func (s *Server) Close() error {
	if s == nil || s.server == nil {
		return nil
	}
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("closing the server: %w", err)
	}
	return nil
}

// Chain returns the certificate of the server and the rest of its chain, as PEM.
func (s *Server) Chain() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out bytes.Buffer
	for _, der := range s.cert.Certificate {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // never fails
	}
	return out.String()
}

// CAs returns the certificates of the authorities of the servers as PEM, without duplicates.
func CAs(servers ...*Server) []byte {
	var out []byte
	for _, s := range servers {
		s.mu.Lock()
		ca := s.signer.pem
		s.mu.Unlock()
		if !bytes.Contains(out, ca) {
			out = append(out, ca...)
		}
	}
	return out
}
