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

// Ports below those that systems choose from for outgoing connections and for listeners without a wish (Linux from
// 32768, macOS from 49152), so that none of these takes a port while the program it is meant for is starting or is
// down.
const (
	lowestPort = 20000
	portRange  = 10000
)

// reserved keeps the locks of ports, by port: a lock is given back when its file is collected as garbage.
var reserved sync.Map

// ReservePorts finds n free ports of the loopback address. They are this process's until it ends, however it ends: no
// other call hands them out, here or in another process of this user, so that a program started on one may be killed
// and started again on it. Its error wraps ctx's, or reports that no port is left.
func ReservePorts(ctx context.Context, n int) ([]int, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("reserved-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for locks of ports: %w", err)
	}
	ports := make([]int, 0, n)
	first := rand.IntN(portRange) //nolint:gosec // Only spreads callers, so that they rarely try the same.
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
	return nil, fmt.Errorf("of %d ports from %d not %d are free", portRange, lowestPort, n)
}

// reservePort reports whether the port was free. Its lock is kept, even if a process without a lock listens on it.
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
