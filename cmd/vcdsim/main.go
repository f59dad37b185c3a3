// Command vcdsim runs a simulated VMware Cloud Director.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const usage = `vcdsim simulates VMware Cloud Director over HTTPS, with its tasks, refusals and latencies.

Usage:
  vcdsim [flags]

It prints where it listens and how to log in, and runs until Ctrl-C. Everything it holds is in memory.

Examples:
  vcdsim                                  a Kubernetes tenant at https://127.0.0.1:8443
  vcdsim --profile recorded --rate 10     latencies of a real VCD, ten times as fast
  vcdsim --preset minimal --addr 127.0.0.1:0 --version 37.3
  vcdsim --print-config                   the values a client needs, then exit

Control API (no login): /_sim/state /_sim/counters /_sim/requests /_sim/unhandled /_sim/faults /_sim/clock
  curl -k -X POST https://127.0.0.1:8443/_sim/clock -d '{"advance": "1h"}'
  curl -k -X POST https://127.0.0.1:8443/_sim/faults \
    -d '{"Operation": "GET /api/vApp/vm", "Count": 1, "Status": 503, "Header": {"Retry-After": "5"}}'

Flags:
`

type options struct {
	preset, addr, profile, version, caFile string
	seed                                   int64
	rate                                   float64
	printConfig, verbose, anyGuest         bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		slog.Error("vcdsim stopped", "error", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("vcdsim", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.Usage = func() {
		_, _ = io.WriteString(out, usage) // nowhere to report to
		fs.PrintDefaults()
	}
	fs.StringVar(&o.preset, "preset", "k8s-tenant", "what exists at the start: k8s-tenant or minimal")
	fs.StringVar(&o.addr, "addr", "127.0.0.1:8443", "address to listen on; port 0 picks a free one")
	fs.StringVar(&o.profile, "profile", "fast", "how long things take: instant, fast (a tenth) or recorded")
	fs.StringVar(&o.version, "version", string(vcdsim.Version106), "highest API version: 37.3 (VCD 10.4), 38.1 (10.5) or 39.0 (10.6)")
	fs.StringVar(&o.caFile, "ca-file", "", "where to write the CA certificate (default: vcdsim-ca.pem in the temporary directory)")
	fs.Int64Var(&o.seed, "seed", 1, "ids, MAC addresses and jitter follow from it")
	fs.Float64Var(&o.rate, "rate", 1, "speed of the clock: 60 makes an hour of a minute; 0 stands until moved by /_sim/clock")
	fs.BoolVar(&o.printConfig, "print-config", false, "print the values a client needs and exit")
	fs.BoolVar(&o.anyGuest, "any-guest", false, "let every VM come up, whatever its guestinfo says")
	fs.BoolVar(&o.verbose, "v", false, "log every request")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; see --help", fs.Arg(0))
	}
	if o.caFile == "" {
		o.caFile = filepath.Join(os.TempDir(), "vcdsim-ca.pem")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	cfg, err := o.config(stderr)
	if err != nil {
		return err
	}
	if o.printConfig {
		return describe(stdout, cfg.Model, "https://"+o.addr, o.caFile)
	}
	sim, err := vcdsim.New(cfg)
	if err != nil {
		return err
	}
	if err := sim.Start(); err != nil {
		return err
	}
	if err := os.WriteFile(o.caFile, sim.CA(), 0o600); err != nil { //nolint:gosec // the caller's own flag
		return errors.Join(fmt.Errorf("writing the CA certificate: %w", err), sim.Close())
	}
	if err := describe(stdout, cfg.Model, sim.URL(), o.caFile); err != nil {
		return errors.Join(err, sim.Close())
	}
	<-ctx.Done()
	return sim.Close()
}

func (o options) config(logs io.Writer) (vcdsim.Config, error) {
	model, ok := vcdsim.PresetByName(o.preset)
	if !ok {
		return vcdsim.Config{}, fmt.Errorf("preset %q is not one of k8s-tenant, minimal", o.preset)
	}
	profile, ok := vcdsim.ProfileByName(o.profile)
	if !ok {
		return vcdsim.Config{}, fmt.Errorf("profile %q is not one of instant, fast, recorded", o.profile)
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	return vcdsim.Config{
		Model: model, Profile: profile, Seed: o.seed, Clock: vcdsim.NewClock(o.rate), Addr: o.addr, Version: vcdsim.Version(o.version),
		Guest: o.guest(), Log: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level})),
	}, nil
}

// guest is what runs in the VMs.
func (o options) guest() vcdsim.Guest {
	if o.anyGuest {
		return nil
	}
	return reader{}
}

// describe prints the values a client needs.
func describe(w io.Writer, m vcdsim.Model, site, caFile string) error {
	_, err := fmt.Fprintf(w, "VCD_SITE=%s\nVCD_CA_FILE=%s\n", site, caFile)
	for _, org := range m.Orgs {
		for _, u := range org.Users {
			if err == nil {
				_, err = fmt.Fprintf(w, "\n# %s (%s)\nVCD_ORG=%s\nVCD_USERNAME=%s\nVCD_PASSWORD=%s\n", u.FullName, u.Role, org.Name, u.Name, u.Password)
			}
			for _, t := range u.APITokens {
				if err == nil {
					_, err = fmt.Fprintf(w, "VCD_API_TOKEN=%s\n", t)
				}
			}
		}
	}
	if err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	return nil
}
