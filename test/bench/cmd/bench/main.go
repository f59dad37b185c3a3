// SPDX-License-Identifier: Apache-2.0

// Command bench measures many clusters on one management cluster: the time until they are ready, the resources of the
// manager, and the processor time by program. It runs real programs against the simulator on this machine. `make bench`
// runs it.
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
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func main() {
	ctrl.SetLogger(klog.NewKlogr().V(-1))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // what is deferred was done
	}
}

// Setups of a run.
const (
	// setupFull uses complete Cluster API: KubeadmControlPlanes and MachineDeployments create control planes and
	// workers, which boot as nodes of simulated in-memory clusters.
	setupFull = "full"
	// setupMachines uses only the core of Cluster API: bench creates the Machines, and no guest boots. It measures the
	// cost of the manager alone.
	setupMachines = "machines"
)

// options are the flags of the command.
type options struct {
	setup             string
	clusters, workers int
	controlPlanes     int
	profile           vcdsim.Profile
	dir               string
	timeout           time.Duration
	profiler          string
	storedOnly        bool
	managerArgs       []string
	// curve contains the numbers of clusters of several runs. If it is empty, there is one run with clusters.
	curve []int
	// plot and results are the files for the curve as SVG, and for all results as JSON. Empty names write none.
	plot, results string
	// rest is how long the manager is measured when all machines are up.
	rest time.Duration
}

func command(ctx context.Context, args []string, out io.Writer) error {
	opts, err := parse(args, out)
	if err != nil {
		return err
	}
	results, err := runAll(ctx, opts, out)
	if err == nil && len(opts.curve) > 0 {
		err = reportCurve(results, opts.plot, out)
	}
	return errors.Join(err, writeResults(opts.results, results))
}

// runAll runs the benchmark for each number of clusters, each with a management cluster of its own. It returns the
// results so far with an error.
func runAll(ctx context.Context, opts options, out io.Writer) ([]result, error) {
	sizes := opts.curve
	if len(sizes) == 0 {
		sizes = []int{opts.clusters}
	}
	var results []result
	for _, clusters := range sizes {
		opts.clusters = clusters
		b := &bench{options: opts, out: out, began: time.Now()}
		r, err := b.run(ctx)
		if err := errors.Join(err, b.close()); err != nil {
			return results, fmt.Errorf("%d clusters: %w", clusters, err)
		}
		results = append(results, r)
		if err := r.print(out); err != nil {
			return results, err
		}
	}
	return results, nil
}

func parse(args []string, out io.Writer) (options, error) {
	var opts options
	cache, err := programs.DefaultCache()
	if err != nil {
		return opts, err
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&opts.setup, "setup", setupFull, "full: complete Cluster API with simulated clusters; machines: only its core with bare machines, to measure the manager alone")
	flags.IntVar(&opts.clusters, "clusters", 100, fmt.Sprintf("number of clusters, at most %d", mostClusters))
	flags.IntVar(&opts.controlPlanes, "control-planes", 1, "number of control planes of each cluster with --setup full")
	flags.IntVar(&opts.workers, "workers", 2, "number of workers of each cluster")
	profile := flags.String("profile", vcdsim.Instant.Name,
		"task times of the simulated VCD: instant, fast (a tenth of a real VCD) or recorded (like a real VCD)")
	flags.StringVar(&opts.dir, "dir", filepath.Join(cache, "bench"), "folder for logs, kubeconfigs and data")
	flags.DurationVar(&opts.timeout, "timeout", 30*time.Minute, "maximum time until the clusters are ready")
	curve := flags.String("curve", "", "numbers of clusters of several runs, such as 10,100,300; instead of --clusters")
	flags.StringVar(&opts.plot, "plot", "", "file for the curve as SVG")
	flags.StringVar(&opts.results, "results", "", "file for the results as JSON")
	flags.DurationVar(&opts.rest, "rest", 0, "how long to measure the manager when all machines are up, such as 10m")
	flags.StringVar(&opts.profiler, "profiler-address", "", "address at which the manager serves pprof, such as localhost:6060")
	flags.BoolVar(&opts.storedOnly, "storage-versions-only", false, "install only the stored version of each kind, so that the API server, which limits large runs, does not convert each change to the older ones")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.managerArgs = flags.Args()
	var known bool
	if opts.profile, known = vcdsim.ProfileByName(*profile); !known {
		return opts, fmt.Errorf("--profile %s: must be instant, fast or recorded", *profile)
	}
	if opts.setup != setupFull && opts.setup != setupMachines {
		return opts, fmt.Errorf("--setup %s: must be full or machines", opts.setup)
	}
	if opts.curve, err = numbers(*curve); err != nil {
		return opts, fmt.Errorf("--curve: %w", err)
	}
	if opts.workers < 0 || opts.controlPlanes < 1 {
		return opts, fmt.Errorf("--workers %d, --control-planes %d: set at least one control plane, and no negative number",
			opts.workers, opts.controlPlanes)
	}
	for _, clusters := range append([]int{opts.clusters}, opts.curve...) {
		if clusters < 1 || clusters > mostClusters {
			return opts, fmt.Errorf("%d clusters: set a number from 1 to %d", clusters, mostClusters)
		}
	}
	opts.dir, err = filepath.Abs(opts.dir)
	return opts, err
}

// mostClusters is the largest number of clusters: the network of the model has addresses for ten machines of each.
const mostClusters = 1500

// numbers parses a list such as 10,100.
func numbers(list string) ([]int, error) {
	var out []int
	for field := range strings.SplitSeq(list, ",") {
		if field == "" {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", field)
		}
		out = append(out, n)
	}
	return out, nil
}
