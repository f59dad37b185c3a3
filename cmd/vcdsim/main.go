// Command vcdsim runs a simulated VMware Cloud Director.
package main

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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "vcdsim:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stdout)
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
		return printOne(stdout, &o, cfg.Model)
	default:
		return serve(ctx, o, cfg, stdout)
	}
}

// serve runs a simulator until the context ends.
func serve(ctx context.Context, o options, cfg vcdsim.Config, stdout io.Writer) error {
	sim, err := vcdsim.New(cfg)
	if err != nil {
		return err
	}
	if err := restore(sim, o.state); err != nil { //nolint:contextcheck // Guests have no context before the start.
		return err
	}
	if err := sim.Start(); err != nil {
		return err
	}
	if err = describe(stdout, sim, o.caFile); err == nil {
		<-ctx.Done()
		err = dump(sim, o.state)
	}
	return errors.Join(err, sim.Close())
}

// restore goes on with the state in a file, if there is one.
func restore(sim *vcdsim.Simulator, file string) error {
	if file == "" {
		return nil
	}
	in, err := os.Open(file) //nolint:gosec // the caller's own flag
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			return fmt.Errorf("the state could not be written at the end: %w", err) // fails now rather than at the end
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the state: %w", err)
	}
	defer func() { _ = in.Close() }()
	return sim.Restore(in)
}

// dump writes the state to a file, which is either the old one or the new one, never half of it.
func dump(sim *vcdsim.Simulator, file string) error {
	if file == "" {
		return nil
	}
	out, err := os.CreateTemp(filepath.Dir(file), ".vcdsim-*") // for its owner only
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	err = errors.Join(sim.Dump(out), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), file)
	}
	if err != nil {
		_ = os.Remove(out.Name()) // what is left of it
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}
