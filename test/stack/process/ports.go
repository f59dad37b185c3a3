//go:build unix

package process

import (
	"context"
	"fmt"
	"net"
)

// FreePorts finds n ports of the loopback address that nobody listens on. Another program may take one before it is
// used: who starts something on them looks for AddressInUse and tries again.
func FreePorts(ctx context.Context, n int) ([]int, error) {
	var config net.ListenConfig
	ports := make([]int, 0, n)
	for range n {
		listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // All stay open until all are found, so that they differ.
		addr, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("finding a free port: unexpected address %s", listener.Addr())
		}
		ports = append(ports, addr.Port)
	}
	return ports, nil
}

// AddressInUse is what the log of a Go program says when somebody else has its port.
const AddressInUse = "address already in use"
