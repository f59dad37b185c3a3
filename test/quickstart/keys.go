// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"golang.org/x/term"
)

// Keys that end the run.
const (
	ctrlC = 3
	ctrlD = 4
)

// interrupts reads Ctrl-C as a key if in is a terminal. The returned channel is closed when it is pressed. As a signal,
// Ctrl-C would also stop make, which would then print an error. The second result restores the terminal.
func interrupts(in *os.File) (<-chan struct{}, func()) {
	pressed := make(chan struct{})
	fd := int(in.Fd())
	if !term.IsTerminal(fd) {
		return pressed, func() {}
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		return pressed, func() {} // Ctrl-C remains a signal
	}
	go func() {
		defer close(pressed)
		key := make([]byte, 1)
		for key[0] != ctrlC && key[0] != ctrlD {
			if _, err := in.Read(key); err != nil {
				return
			}
		}
	}()
	return pressed, func() { _ = term.Restore(fd, before) } // best effort: the run ends anyway
}
