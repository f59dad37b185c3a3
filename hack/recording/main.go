// SPDX-License-Identifier: Apache-2.0

// Command recording creates the animated picture of `make quickstart` in the documentation. It runs the command in a
// pseudo terminal, ends it with Ctrl-C as a user would, shortens the recording and renders it as an SVG without
// scripts. The recording is kept as an asciicast, which asciinema plays in real time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var root, cast, out string
	var again bool
	flag.StringVar(&root, "root", "../..", "the source tree")
	flag.StringVar(&cast, "cast", "quickstart.cast", "file for the recording in real time")
	flag.StringVar(&out, "out", "quickstart.svg", "file for the picture")
	flag.BoolVar(&again, "again", false, "render the recording that -cast has, instead of running the quickstart")
	flag.Parse()
	if err := run(ctx, root, cast, out, again); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		stop()
		os.Exit(1) //nolint:gocritic // the deferred stop was called
	}
}

func run(ctx context.Context, root, castFile, out string, again bool) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("finding the source tree: %w", err)
	}
	for _, file := range []string{castFile, out} {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return fmt.Errorf("making the folder of %s: %w", file, err)
		}
	}
	if !again {
		if err := recordTo(ctx, root, castFile); err != nil {
			return err
		}
	}
	recorded, err := read(castFile)
	if err != nil {
		return err
	}
	return render(ctx, shorten(recorded), out)
}

// recordTo records the quickstart and writes the recording to a file.
func recordTo(ctx context.Context, root, file string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("finding the folder that a picture must not name: %w", err)
	}
	recorded, err := record(ctx, root)
	if err != nil {
		return err
	}
	if recorded, err = redact(recorded, root, home); err != nil {
		return err
	}
	return write(file, recorded)
}
