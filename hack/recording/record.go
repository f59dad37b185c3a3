// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// The size of the terminal. It fits the end of the quickstart, from the tree of objects on, including its columns up to
// the reason.
const (
	columns = 112
	rows    = 30
)

// waiting is the output of the quickstart when it waits for Ctrl-C. pause is the delay before the key is pressed: by
// then the terminal passes it as a key, not as a signal.
const (
	waiting = "Ctrl-C takes everything down."
	pause   = 2 * time.Second
	ctrlC   = 3
)

// record runs the quickstart in a terminal and presses Ctrl-C when the cluster is available.
func record(ctx context.Context, root string) ([]event, error) {
	command := exec.CommandContext(ctx, "make", "quickstart")
	command.Dir = root
	command.Env = environment(os.Environ())
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	began := time.Now()
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		return nil, fmt.Errorf("starting make quickstart in a terminal: %w", err)
	}
	defer func() { _ = terminal.Close() }()
	events, err := follow(terminal, began)
	if err = errors.Join(err, command.Wait()); err != nil {
		return nil, fmt.Errorf("running make quickstart: %w", err)
	}
	return events, nil
}

// environment returns the environment without the variables of a calling make.
func environment(all []string) []string {
	own := []string{"TERM=xterm-256color"}
	for _, variable := range all {
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS=") &&
			!strings.HasPrefix(variable, "TERM=") {
			own = append(own, variable)
		}
	}
	return own
}

// follow reads and prints the output until the program ends, and presses Ctrl-C once.
func follow(terminal *os.File, began time.Time) ([]event, error) {
	var events []event
	var screen bytes.Buffer
	pressed := false
	chunk := make([]byte, 64<<10)
	for {
		n, err := terminal.Read(chunk)
		if n > 0 {
			_, _ = os.Stdout.Write(chunk[:n])
			_, _ = screen.Write(chunk[:n])
			events = append(events, event{time.Since(began).Seconds(), string(chunk[:n])})
		}
		if !pressed && bytes.Contains(screen.Bytes(), []byte(waiting)) {
			pressed = true
			time.AfterFunc(pause, func() { _, _ = terminal.Write([]byte{ctrlC}) })
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO): // Linux returns EIO when the program has ended
			return events, nil
		case err != nil:
			return events, fmt.Errorf("reading the terminal: %w", err)
		}
	}
}
