// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const usage = `vcdsim simulates VMware Cloud Director over HTTPS, with its tasks, errors and latencies.

Usage:
  vcdsim [flags]

It prints its address, credentials and configuration for clients, and runs until Ctrl-C. Its page shows the
activity: https://127.0.0.1:8443/_sim/

Examples:
  vcdsim                                        a Kubernetes tenant at https://127.0.0.1:8443
  vcdsim --preset large --profile recorded      10,000 VMs, latencies of a real VCD
  vcdsim --clock 2026-03-01T00:00:00Z           the same seed and requests produce the same responses and dates
  vcdsim --clock 60                             an hour in a minute; with --clock manual, only /_sim/clock advances the time
  vcdsim --state site.json                      restores the state of the last run, and saves it on exit
  vcdsim --cells 2                              two cells behind a load balancer
  vcdsim --print terraform                      print only the Terraform configuration and exit
  vcdsim --print model > site.yaml              the initial objects, to edit for vcdsim --model site.yaml
  vcdsim --assumptions report.yaml              behave like the site in a report of vcdctl verify-site

Control API (only from this machine, or with --control-token): faults, cells, clock, dump, restore, metrics:
  curl -k https://127.0.0.1:8443/_sim/faults -d '{"operation": "GET /api/vApp/vm", "count": 3, "status": 503}'
  curl -k https://127.0.0.1:8443/_sim/clock -d '{"advance": "1h"}'

Flags:
`

type options struct {
	preset, model, assumptions                string
	listen, profile, apiVersion, clock, state string
	caFile, certFile, keyFile                 string
	publicURL, controlToken, print            string
	seed                                      int64
	cells                                     int
	verbose, anyGuest, version                bool
}

// parse parses the flags. It returns pflag.ErrHelp after writing the help to out.
func parse(args []string, out io.Writer, extension Extension) (options, error) {
	var o options
	fs := newFlags(&o, extension)
	fs.SetOutput(io.Discard)
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, _ = io.WriteString(out, extension.Usage()+fs.FlagUsages()) // an error cannot be reported anywhere
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; see --help", err)
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; see --help", fs.Arg(0))
	}
	if o.print != "" && !slices.Contains(printable(), o.print) {
		return o, fmt.Errorf("--print %q is not one of %s", o.print, strings.Join(printable(), ", "))
	}
	if o.model != "" && fs.Changed("preset") {
		return o, errors.New("--model and --preset are mutually exclusive")
	}
	if (o.certFile == "") != (o.keyFile == "") {
		return o, errors.New("--tls-cert and --tls-key must be set together")
	}
	o.caFile = cmp.Or(o.caFile, o.certFile, filepath.Join(cacheDir(), "ca.pem"))
	return o, nil
}

func newFlags(o *options, extension Extension) *pflag.FlagSet {
	fs := pflag.NewFlagSet(extension.Name(), pflag.ContinueOnError)
	fs.SortFlags = false
	extension.Flags(fs)
	fs.StringVar(&o.preset, "preset", "k8s-tenant",
		"set of initial objects: "+strings.Join(vcdsim.PresetNames(), ", "))
	fs.StringVar(&o.model, "model", "",
		"YAML file with the initial objects, instead of a preset; --print model prints one")
	fs.StringVar(&o.assumptions, "assumptions", "", "YAML file with assumptions that differ from the defaults, such as a report of vcdctl verify-site; --print assumptions prints one")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:8443", "listen address; port 0 selects a free port")
	fs.StringVar(&o.profile, "profile", "fast", "latency profile: instant, fast (a tenth of recorded) or recorded")
	fs.StringVar(&o.apiVersion, "api-version", string(vcdsim.Version106),
		"highest API version: 36.3 (VCD 10.3.3), 37.2 (10.4.2), 37.3 (10.4.3), 38.1 (10.5.1) or 39.0 (10.6)")
	fs.StringVar(&o.clock, "clock", "real", "simulated clock: real, manual, a fixed time such as 2026-03-01T00:00:00Z, or a speed factor, such as 60 for an hour per minute")
	fs.StringVar(&o.state, "state", "",
		"state file, which is restored at the start if it exists, and written on exit; it contains all passwords")
	fs.StringVar(&o.caFile, "ca-file", "", "certificate of the authority that signs the certificate of vcdsim, created at the first start; its key has the same file name with the suffix .key (default vcdsim/ca.pem in the user's cache directory)")
	fs.StringVar(&o.certFile, "tls-cert", "",
		"server certificate with its chain, instead of one signed by the authority; clients then trust --ca-file")
	fs.StringVar(&o.keyFile, "tls-key", "", "key of --tls-cert")
	fs.Int64Var(&o.seed, "seed", 1, "seed for IDs, MAC addresses, jitter and fault probabilities")
	fs.IntVar(&o.cells, "cells", 1,
		"number of cells; several cells have separate addresses, and --listen is the address of the load balancer")
	fs.StringVar(&o.publicURL, "public-url", "", "base of hrefs (default: the address of the request)")
	fs.StringVar(&o.controlToken, "control-token", "",
		"token of the control API, which then also accepts requests from other machines")
	fs.StringVar(&o.print, "print", "", "print one configuration and exit: "+strings.Join(printable(), ", "))
	fs.BoolVar(&o.anyGuest, "any-guest", false, "start all VMs, regardless of their guestinfo")
	fs.BoolVarP(&o.verbose, "verbose", "v", false, "log every request")
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	return fs
}

// cacheDir returns the folder for files that the next start reuses, in the user's cache or the system's temporary
// folder.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "vcdsim")
}

// config returns the configuration from the flags, or an error that lists every invalid flag.
func (o options) config(logs io.Writer) (vcdsim.Config, error) {
	model, modelErr := o.startModel()
	errs := []error{modelErr}
	profile, ok := vcdsim.ProfileByName(o.profile)
	if !ok {
		errs = append(errs, fmt.Errorf("profile %q is not one of instant, fast, recorded", o.profile))
	}
	assumptions, assumptionsErr := o.assumed()
	errs = append(errs, assumptionsErr)
	clock, err := o.newClock()
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	return vcdsim.Config{
		Model:        model,
		Profile:      profile,
		Seed:         o.seed,
		Clock:        clock,
		Addr:         o.listen,
		Version:      vcdsim.Version(o.apiVersion),
		Cells:        o.cells,
		PublicURL:    o.publicURL,
		ControlToken: o.controlToken,
		Guest:        o.guest(),
		Assumptions:  &assumptions,
		Log:          slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level})),
	}, errors.Join(append(errs, err)...)
}

// startModel returns the initial model.
func (o options) startModel() (vcdsim.Model, error) {
	if o.model == "" {
		model, ok := vcdsim.PresetByName(o.preset)
		if !ok {
			return model, fmt.Errorf("preset %q is not one of %s", o.preset, strings.Join(vcdsim.PresetNames(), ", "))
		}
		return model, nil
	}
	file, err := os.Open(o.model)
	if err != nil {
		return vcdsim.Model{}, fmt.Errorf("reading the model: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	model, err := vcdsim.ReadModel(file)
	if err != nil {
		return model, fmt.Errorf("%s: %w", o.model, err)
	}
	return model, nil
}

// assumed returns the assumptions of the file, or the defaults.
func (o options) assumed() (vcdsim.Assumptions, error) {
	if o.assumptions == "" {
		return vcdsim.DefaultAssumptions(), nil
	}
	file, err := os.Open(o.assumptions)
	if err != nil {
		return vcdsim.Assumptions{}, fmt.Errorf("reading the assumptions: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	assumptions, err := vcdsim.ReadAssumptions(file)
	if err != nil {
		return assumptions, fmt.Errorf("%s: %w", o.assumptions, err)
	}
	return assumptions, nil
}

func (o options) newClock() (*vcdsim.SimClock, error) {
	switch o.clock {
	case "real":
		return vcdsim.NewClock(1), nil
	case "manual":
		return vcdsim.NewManualClock(time.Now()), nil
	}
	if at, err := time.Parse(time.RFC3339, o.clock); err == nil {
		return vcdsim.NewManualClock(at), nil
	}
	rate, err := strconv.ParseFloat(o.clock, 64)
	if err != nil || rate <= 0 || rate > 100_000 {
		return nil, fmt.Errorf("clock %q is not real, manual, a time or a number up to 100000", o.clock)
	}
	return vcdsim.NewClock(rate), nil
}

// guest returns the guest of the VMs.
func (o options) guest() vcdsim.Guest {
	if o.anyGuest {
		return nil
	}
	return reader{}
}

// The values of --print other than the names of configurations.
const (
	printModel       = "model"
	printAssumptions = "assumptions"
)

// printable returns the values of --print.
func printable() []string { return append(configNames(), printModel, printAssumptions) }

func configNames() []string { return slices.Sorted(maps.Keys(configurations())) }
