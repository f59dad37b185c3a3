// SPDX-License-Identifier: Apache-2.0

// Command rpctool is the vmware-rpctool of a simulated node. It sends its only argument, "info-get KEY" or "info-set
// KEY VALUE", to the hypervisor over a Unix socket and prints the response.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const (
	// socket is the path of the hypervisor's socket.
	socket = "/run/host/guestinfo/sock"
	// limit is the maximum size of a response, in bytes. VMware's limit is 1 MiB per key.
	limit = 4 << 20
	// timeout is the time limit for one request. Responses come from memory.
	timeout = 30 * time.Second
)

// errNoValue has VMware's text, which cloud-init compares.
var errNoValue = errors.New("No value found") //nolint:staticcheck // the text of another program

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, `usage: vmware-rpctool "info-get KEY" or "info-set KEY VALUE"`)
		os.Exit(2)
	}
	answer, err := exchange(socket, os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.Stdout.Write(answer)
}

// exchange sends a request and ends it by closing the write side of the connection. The first byte of the response is '1',
// followed by the value, or '0'.
func exchange(socket, request string) ([]byte, error) {
	conn, err := net.DialTimeout("unix", socket, timeout) //nolint:noctx // one request with a deadline
	if err != nil {
		return nil, fmt.Errorf("asking the hypervisor: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := send(conn, request); err != nil {
		return nil, fmt.Errorf("asking the hypervisor: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the hypervisor's answer: %w", err)
	case len(answer) == 0:
		return nil, errors.New("the hypervisor gave no answer")
	case len(answer) > limit:
		return nil, fmt.Errorf("the hypervisor's answer is longer than %d bytes", limit)
	case answer[0] != '1':
		return nil, errNoValue
	}
	return answer[1:], nil
}

func send(conn net.Conn, request string) error {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
