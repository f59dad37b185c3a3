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
	managerArgs       []string
}

func command(ctx context.Context, args []string, out io.Writer) error {
	opts, err := parse(args, out)
	if err != nil {
		return err
	}
	b := &bench{options: opts, out: out, began: time.Now()}
	err = b.run(ctx)
	return errors.Join(err, b.close())
}

func parse(args []string, out io.Writer) (options, error) {
	var opts options
	cache, err := programs.DefaultCache()
	if err != nil {
		return opts, err
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&opts.setup, "setup", setupFull, "full: complete Cluster API with simulated clusters; machines: "+
		"only its core with bare machines, to measure the manager alone")
	flags.IntVar(&opts.clusters, "clusters", 100, "number of clusters, at most 200")
	flags.IntVar(&opts.controlPlanes, "control-planes", 1, "number of control planes of each cluster with --setup full")
	flags.IntVar(&opts.workers, "workers", 2, "number of workers of each cluster")
	profile := flags.String("profile", vcdsim.Instant.Name,
		"task times of the simulated VCD: instant, fast (a tenth of a real VCD) or recorded (like a real VCD)")
	flags.StringVar(&opts.dir, "dir", filepath.Join(cache, "bench"), "folder for logs, kubeconfigs and data")
	flags.DurationVar(&opts.timeout, "timeout", 30*time.Minute, "maximum time until the clusters are ready")
	flags.StringVar(&opts.profiler, "profiler-address", "", "address at which the manager serves pprof, such as localhost:6060")
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
	if opts.clusters < 1 || opts.clusters > 200 || opts.workers < 0 || opts.controlPlanes < 1 {
		return opts, fmt.Errorf("--clusters %d, --workers %d, --control-planes %d: must be 1 to 200 clusters, at least 0 "+
			"workers and at least 1 control plane", opts.clusters, opts.workers, opts.controlPlanes)
	}
	opts.dir, err = filepath.Abs(opts.dir)
	return opts, err
}
