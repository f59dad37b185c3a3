// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// The ports are below the ranges from which systems select ports for outgoing connections and for listeners on port 0
// (from 32768 on Linux, from 49152 on macOS). This way no other socket takes the port of a program while the program
// starts or is down.
const (
	lowestPort = 20000
	portRange  = 10000
)

// reserved holds the locks of ports, by port. A lock would be released if its file were garbage collected.
var reserved sync.Map

// ReservePorts returns n free ports of the loopback address. They stay reserved until this process ends, even if it is
// killed. No other call of this user returns them, so that a program can be killed and restarted on the same port. The
// error wraps the error of ctx, or reports that too few ports are free.
func ReservePorts(ctx context.Context, n int) ([]int, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("reserved-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating a folder for locks of ports: %w", err)
	}
	ports := make([]int, 0, n)
	first := rand.IntN(portRange) //nolint:gosec // only spreads callers, so that they rarely collide
	for i := range portRange {
		if len(ports) == n {
			return ports, nil
		}
		port := lowestPort + (first+i)%portRange
		free, err := reservePort(ctx, dir, port)
		if err != nil {
			return nil, fmt.Errorf("reserving port %d: %w", port, err)
		}
		if free {
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("fewer than %d of the ports from %d to %d are free", n, lowestPort, lowestPort+portRange-1)
}

// reservePort reports whether the port was free. It keeps the lock even if a process without a lock listens on the
// port.
func reservePort(ctx context.Context, dir string, port int) (bool, error) {
	unlock, err := Lock(filepath.Join(dir, strconv.Itoa(port)))
	var locked *LockedError
	if errors.As(err, &locked) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	reserved.Store(port, unlock)
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, listener.Close()
}
