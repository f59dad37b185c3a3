package vcdsim

import (
	"bytes"
	"context"
	"crypto/tls"
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

// A door is an address the simulator listens on, with a certificate that can be changed.
type door struct {
	hosts    []string
	listener net.Listener
	server   *http.Server

	mu     sync.Mutex
	signer *authority
	cert   *tls.Certificate
	conns  map[net.Conn]bool
}

func newDoor(signer *authority, hosts ...string) (*door, error) {
	d := &door{hosts: hosts, conns: map[net.Conn]bool{}}
	return d, d.renew(signer)
}

// renew changes the certificate and drops the connections that were made with the old one.
func (d *door) renew(signer *authority) error {
	cert, err := signer.issue(d.hosts...)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.signer, d.cert = signer, cert
	d.mu.Unlock()
	d.drop()
	return nil
}

// drop closes all connections.
func (d *door) drop() {
	d.mu.Lock()
	conns := slices.Collect(maps.Keys(d.conns))
	d.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // it may be closed already
	}
}

func (d *door) track(c net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch state {
	case http.StateNew:
		d.conns[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(d.conns, c)
	default:
	}
}

func (d *door) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cert, nil
}

// open listens, unless it has a listener, and serves until close.
func (d *door) open(ctx context.Context, addr string, h http.Handler, log *slog.Logger) error {
	if d.listener == nil {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("listening on %s: %w", addr, err)
		}
		d.listener = listener
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true) // as VCD; a dropped connection is then one request's
	d.server = &http.Server{
		Protocols: &protocols, Handler: h, ConnState: d.track,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: d.certificate},
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := d.server.ServeTLS(d.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			log.Error("Serving stopped", "error", err)
		}
	}()
	return nil
}

// url is the address, empty before open.
func (d *door) url() string {
	if d == nil || d.listener == nil {
		return ""
	}
	return "https://" + d.listener.Addr().String()
}

func (d *door) close() error {
	if d == nil || d.server == nil {
		return nil
	}
	if err := d.server.Close(); err != nil {
		return fmt.Errorf("closing the server: %w", err)
	}
	return nil
}

// authorities are the certificates of those who signed for the doors, each once.
func authorities(doors ...*door) []byte {
	var out []byte
	for _, d := range doors {
		d.mu.Lock()
		ca := d.signer.pem
		d.mu.Unlock()
		if !bytes.Contains(out, ca) {
			out = append(out, ca...)
		}
	}
	return out
}
