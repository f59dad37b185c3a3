// SPDX-License-Identifier: Apache-2.0

// Command bench measures many clusters on one management cluster: how long they take, which resources the manager
// needs, and which program used the time. It runs real programs against the simulator on this machine. `make bench`
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
	// setupFull uses all of Cluster API: control planes and workers come from KubeadmControlPlanes and
	// MachineDeployments, and boot as nodes of simulated clusters in memory.
	setupFull = "full"
	// setupMachines uses only the core of Cluster API: bench creates the Machines, and nothing boots. It shows the cost
	// of the manager alone.
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
	flags.StringVar(&opts.setup, "setup", setupFull, "full: all of Cluster API, and simulated clusters; machines: "+
		"its core and bare machines, which shows the manager alone")
	flags.IntVar(&opts.clusters, "clusters", 100, "number of clusters, at most 200")
	flags.IntVar(&opts.controlPlanes, "control-planes", 1, "number of control planes of each cluster of set-up full")
	flags.IntVar(&opts.workers, "workers", 2, "number of workers of each cluster")
	profile := flags.String("profile", vcdsim.Instant.Name,
		"how long the simulated VCD takes: instant, fast (a tenth of a real one) or recorded (as a real one)")
	flags.StringVar(&opts.dir, "dir", filepath.Join(cache, "bench"), "folder for logs, kubeconfigs and data")
	flags.DurationVar(&opts.timeout, "timeout", 30*time.Minute, "how long the clusters may take to come up")
	flags.StringVar(&opts.profiler, "profiler-address", "", "where the manager serves pprof, such as localhost:6060")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.managerArgs = flags.Args()
	var known bool
	if opts.profile, known = vcdsim.ProfileByName(*profile); !known {
		return opts, fmt.Errorf("--profile %s is none of instant, fast and recorded", *profile)
	}
	if opts.setup != setupFull && opts.setup != setupMachines {
		return opts, fmt.Errorf("--setup %s is neither full nor machines", opts.setup)
	}
	if opts.clusters < 1 || opts.clusters > 200 || opts.workers < 0 || opts.controlPlanes < 1 {
		return opts, fmt.Errorf("--clusters %d, --workers %d, --control-planes %d: from 1 to 200 clusters, no fewer "+
			"workers than none, and one control plane at least", opts.clusters, opts.workers, opts.controlPlanes)
	}
	opts.dir, err = filepath.Abs(opts.dir)
	return opts, err
}
