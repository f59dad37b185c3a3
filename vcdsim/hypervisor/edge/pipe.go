// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// Join copies data between two connections until both directions end or ctx ends, and then closes b.
func Join(ctx context.Context, a, b net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = a.Close(); _ = b.Close() }) // ends the copies
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyHalf(b, a)
	}()
	copyHalf(a, b)
	<-done
	_ = b.Close() // both directions ended
}

// copyHalf copies one direction and then closes the write side of the destination.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite() // the peer may be gone
		return
	}
	_ = to.Close()   // the remaining data
	_ = from.Close() // cannot be delivered
}

func (s *server) counter(t Target) *atomic.Int64 {
	c, _ := s.active.LoadOrStore(t.At, &atomic.Int64{})
	n, _ := c.(*atomic.Int64)
	return n
}

func (s *server) connections(t Target) int { return int(s.counter(t).Load()) }

// count counts a connection until the returned function is called.
func (s *server) count(t Target) func() {
	c := s.counter(t)
	c.Add(1)
	return func() { c.Add(-1) }
}

const (
	maxPacket  = 64 << 10
	udpIdle    = time.Minute
	maxClients = 4096
)

// servePackets forwards the packets of each client to one target over a separate socket, and sends its replies back.
func (s *server) servePackets(ctx context.Context, conn net.PacketConn) {
	clients := map[string]net.Conn{}
	ended := make(chan string, maxClients)
	buf := make([]byte, maxPacket)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			break // closed
		}
		for len(ended) > 0 {
			delete(clients, <-ended)
		}
		target := clients[from.String()]
		if target == nil {
			if target = s.session(ctx, conn, from, ended); target == nil || len(clients) >= maxClients {
				continue
			}
			clients[from.String()] = target
		}
		_ = target.SetDeadline(time.Now().Add(udpIdle)) // an open socket
		_, _ = target.Write(buf[:n])                    // packets may be lost
	}
	for _, c := range clients {
		_ = c.Close() // the listener is closed
	}
}

// session connects a UDP client to a target. It returns nil if no target is up.
func (s *server) session(ctx context.Context, conn net.PacketConn, client net.Addr, ended chan<- string) net.Conn {
	order := s.order()
	if len(order) == 0 {
		return nil
	}
	target, err := s.proxy.wire.Dial(ctx, "udp", order[0].At.String())
	if err != nil {
		return nil
	}
	done := s.count(order[0])
	_ = target.SetDeadline(time.Now().Add(udpIdle)) // a new socket
	go func() {
		defer done()
		buf := make([]byte, maxPacket)
		for {
			n, err := target.Read(buf)
			if err != nil {
				break // idle, refused or closed
			}
			_, _ = conn.WriteTo(buf[:n], client) // packets may be lost
		}
		_ = target.Close() // no longer used
		select {
		case ended <- client.String():
		case <-ctx.Done():
		}
	}()
	return target
}
