// SPDX-License-Identifier: Apache-2.0

// Package program is the command vcdsim. Other commands that run the simulator share its flags, its output and its
// state file. They add to it with an Extension.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// An Extension is the part that a command adds to vcdsim.
type Extension interface {
	// Name is the name of the command. Usage is the beginning of its help.
	Name() string
	Usage() string
	// Flags adds flags.
	Flags(fs *pflag.FlagSet)
	// Open completes the configuration after the flags are parsed.
	Open(cfg *vcdsim.Config) (Running, error)
}

// Running is an opened Extension.
type Running interface {
	// Serve starts the extension beside the simulator and runs it until ctx ends. It writes messages for users to
	// out.
	Serve(ctx context.Context, sim *vcdsim.Simulator, out io.Writer) error
	// Close is called after the simulator is closed.
	Close() error
}

// Main runs the command until it is interrupted, and returns its exit code.
func Main(extension Extension) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := runWith(ctx, os.Args[1:], os.Stdout, os.Stderr, extension)
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(os.Stderr, extension.Name()+":", err)
	return 1
}

// Plain is the extension of vcdsim itself. It adds nothing.
type Plain struct{}

// Name implements Extension.
func (Plain) Name() string { return "vcdsim" }

// Usage implements Extension.
func (Plain) Usage() string { return usage }

// Flags implements Extension.
func (Plain) Flags(*pflag.FlagSet) {}

// Open implements Extension.
func (Plain) Open(*vcdsim.Config) (Running, error) { return Plain{}, nil }

// Serve implements Running.
func (Plain) Serve(context.Context, *vcdsim.Simulator, io.Writer) error { return nil }

// Close implements Running.
func (Plain) Close() error { return nil }

func runWith(ctx context.Context, args []string, stdout, stderr io.Writer, extension Extension) (err error) {
	o, err := parse(args, stdout, extension)
	if err != nil {
		return err
	}
	if o.version {
		_, err := fmt.Fprintln(stdout, version.Long())
		return err
	}
	cfg, err := o.config(stderr)
	if err == nil {
		err = o.trust(&cfg)
	}
	switch {
	case err != nil:
		return err
	case o.print != "":
		return printOne(stdout, &o, cfg)
	}
	running, err := extension.Open(&cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.Close()) }()
	return serve(ctx, o, cfg, running, stdout)
}

// serve runs a simulator until the context ends.
func serve(ctx context.Context, o options, cfg vcdsim.Config, running Running, stdout io.Writer) error {
	sim, err := vcdsim.New(cfg)
	if err != nil {
		return err
	}
	if err := restore(sim, o.state); err != nil {
		return err
	}
	if err := sim.Start(); err != nil {
		return err
	}
	if err = describe(stdout, sim, o.caFile); err == nil {
		err = running.Serve(ctx, sim, stdout)
	}
	if err == nil {
		<-ctx.Done()
		err = dump(sim, o.state)
	}
	return errors.Join(err, sim.Close())
}

// restore restores the state from a file, if the file exists.
func restore(sim *vcdsim.Simulator, file string) error {
	if file == "" {
		return nil
	}
	in, err := os.Open(file) //nolint:gosec // the caller's own flag
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			return fmt.Errorf("writing the state on exit: %w", err) // fail now, not on exit
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the state: %w", err)
	}
	defer func() { _ = in.Close() }()
	return sim.Restore(in)
}

// dump writes the state to a file atomically: the file contains either the old or the new state.
func dump(sim *vcdsim.Simulator, file string) error {
	if file == "" {
		return nil
	}
	out, err := os.CreateTemp(filepath.Dir(file), ".vcdsim-*") // readable only by its owner
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	err = errors.Join(sim.Dump(out), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), file)
	}
	if err != nil {
		_ = os.Remove(out.Name()) // remove an incomplete file
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}
