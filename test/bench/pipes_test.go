// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"net"
	"sync"
)

// pipes is an in-memory network with a single host, vcdsim. Unlike a goroutine that waits for a socket, a goroutine
// that waits for a pipe does not stop the clock of a bubble.
type pipes struct {
	incoming chan net.Conn
	closed   chan struct{}
	close    func()
}

func newPipes() *pipes {
	p := &pipes{incoming: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

// Dial connects to the host. It ignores the address.
func (p *pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.incoming <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.incoming:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.close()
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return address{} }

// address is the address of the host.
type address struct{}

// Network implements net.Addr.
func (address) Network() string { return "pipe" }

// String implements net.Addr.
func (address) String() string { return "vcdsim:443" }
