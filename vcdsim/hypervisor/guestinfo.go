// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

// guestinfo serves the extra configuration of a VM to vmware-rpctool in the VM. A request is the argument of the
// program, up to the end of the stream. The response is "1" and a value, or "0" and a reason.
type guestinfo struct {
	mu      sync.Mutex
	values  map[string]string
	onWrite func(key, value string) // called without the lock, in order

	listener net.Listener
}

const (
	maxGuestinfoRequest = guest.MaxValue + 1<<10
	guestinfoTimeout    = 30 * time.Second
)

// serveGuestinfo listens in a folder that the VM sees as /run/host/guestinfo, until close.
func serveGuestinfo(
	ctx context.Context, dir string, values map[string]string, onWrite func(key, value string),
) (*guestinfo, error) {
	path := filepath.Join(dir, "sock")
	if err := os.RemoveAll(path); err != nil {
		return nil, fmt.Errorf("removing an old socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening for guestinfo: %w", err)
	}
	g := &guestinfo{values: maps.Clone(values), onWrite: onWrite, listener: listener}
	if g.values == nil {
		g.values = map[string]string{}
	}
	// These are from an earlier boot: the guest is up when it writes them again.
	delete(g.values, localIPv4)
	delete(g.values, localIPv6)
	go g.accept()
	return g, nil
}

const (
	localIPv4 = "guestinfo.local-ipv4"
	localIPv6 = "guestinfo.local-ipv6"
)

func (g *guestinfo) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return // closed
		}
		g.serve(conn)
	}
}

// serve serves one request. Requests are served one at a time, so that writes keep their order.
func (g *guestinfo) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()                    // answered, or the guest disconnected
	_ = conn.SetDeadline(time.Now().Add(guestinfoTimeout)) // an open socket
	data, err := io.ReadAll(io.LimitReader(conn, maxGuestinfoRequest))
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, g.answer(string(data))) // the guest may have disconnected
}

// answer executes a request and returns the response.
func (g *guestinfo) answer(request string) string {
	command, rest, _ := strings.Cut(strings.TrimLeft(request, " "), " ")
	switch command {
	case "info-get":
		g.mu.Lock()
		defer g.mu.Unlock()
		value, ok := g.values[strings.TrimSpace(rest)]
		if !ok {
			return "0No value found"
		}
		return "1" + value
	case "info-set":
		key, value, _ := strings.Cut(rest, " ")
		if !strings.HasPrefix(key, "guestinfo.") {
			return "0Unable to write key"
		}
		g.mu.Lock()
		g.values[key] = value
		g.mu.Unlock()
		g.onWrite(key, value)
		return "1"
	}
	return "0Unknown command"
}

func (g *guestinfo) close() { _ = g.listener.Close() } // also removes the socket
