// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

func main() {
	ctrl.SetLogger(klog.NewKlogr().V(-1))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// options are the flags of the command.
type options struct {
	duration time.Duration
	clusters int
	ccmCount int
	seed     uint64
	pace     float64
	bound    time.Duration
	dir      string
	planOnly bool
}

// maxClusters is the maximum number of clusters at a time: their endpoints have one byte.
const maxClusters = 250

func parse(args []string, out io.Writer) (options, error) {
	var opts options
	cache, err := programs.DefaultCache()
	if err != nil {
		return opts, err
	}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.DurationVar(&opts.duration, "duration", 24*time.Hour, "simulated time of random work")
	flags.IntVar(&opts.clusters, "clusters", 100, "number of clusters at a time, at most 250")
	flags.IntVar(&opts.ccmCount, "ccms", 10, "number of clusters at a time with a cloud controller manager and Services")
	flags.Uint64Var(&opts.seed, "seed", 1, "chooses all actions; 0 is another one each time")
	flags.Float64Var(&opts.pace, "pace", 8, "simulated hours per real hour; with fewer processors, choose less")
	flags.DurationVar(&opts.bound, "bound", 15*time.Minute,
		"real time in which all clusters become ready after the last fault, and in which all are deleted")
	flags.StringVar(&opts.dir, "dir", filepath.Join(cache, "soak"), "folder for logs, kubeconfigs and data")
	flags.BoolVar(&opts.planOnly, "plan", false, "print all actions of the seed, and exit")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if opts.clusters < 1 || opts.clusters > maxClusters {
		return opts, fmt.Errorf("-clusters is %d; choose 1 to %d", opts.clusters, maxClusters)
	}
	if opts.duration < 10*time.Minute || opts.pace <= 0 || opts.bound <= 0 {
		return opts, fmt.Errorf("-duration is %s, -pace %g and -bound %s; choose at least 10m, and more than 0", opts.duration,
			opts.pace, opts.bound)
	}
	opts.ccmCount = min(max(opts.ccmCount, 0), opts.clusters)
	if opts.seed == 0 {
		opts.seed = uint64(time.Now().UnixNano())
	}
	opts.dir, err = filepath.Abs(opts.dir)
	return opts, err
}

// command runs the plan of the flags, and returns an error if anything was lost, left or grew.
func command(ctx context.Context, args []string, out io.Writer) error {
	opts, err := parse(args, out)
	if err != nil {
		return err
	}
	events := plan(scope{
		seed:     opts.seed,
		clusters: opts.clusters,
		duration: opts.duration,
		ccms:     opts.ccmCount,
		sites:    sites,
	})
	if opts.planOnly {
		for _, e := range events {
			_, _ = fmt.Fprintln(out, e)
		}
		return nil
	}
	_, _ = fmt.Fprintf(out, "Seed %d: %d events on %d clusters in %s of simulated time, which take %s\n", opts.seed,
		len(events), opts.clusters, opts.duration,
		time.Duration(float64(opts.duration)/opts.pace).Round(time.Second))
	w := &world{options: opts, out: out, judge: &judge{seed: opts.seed, out: out}, ccms: map[string]*ccm{}}
	err = w.start(ctx)
	if err == nil {
		err = w.run(ctx, events)
	}
	if err := errors.Join(err, w.close()); err != nil {
		return err
	}
	if n := w.judge.count(); n > 0 {
		return fmt.Errorf("%d violations; repeat with -seed=%d -clusters=%d -duration=%s; the logs are in %s", n, opts.seed,
			opts.clusters, opts.duration, w.logs())
	}
	return nil
}
