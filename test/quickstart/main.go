// SPDX-License-Identifier: Apache-2.0

// Command quickstart creates a Kubernetes cluster on a simulated VMware Cloud Director on this machine. It uses the
// real Cluster API, this provider as it is shipped, and the real clusterctl, all built from Go modules.
//
// With a terminal, the cluster runs until Ctrl-C. Without one, the command deletes the cluster and checks that nothing
// is left behind.
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

	"golang.org/x/term"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func main() {
	klog.SetOutput(io.Discard) // so that libraries do not log to the screen
	klog.LogToStderr(false)
	ctrl.SetLogger(klog.Background())
	os.Exit(command(context.Background(), os.Args[1:], os.Stdout))
}

// command runs the quickstart and returns the exit code.
func command(ctx context.Context, args []string, out *os.File) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintln(out, "quickstart:", err)
		return 2
	}
	q := newQuickstart(opts, out)
	q.interactive = term.IsTerminal(int(out.Fd()))
	err = q.run(ctx)
	if err != nil && (ctx.Err() == nil || !q.up) {
		err = errors.Join(err, q.keepLogs())
	}
	stopped := q.close()
	switch {
	case ctx.Err() != nil && q.up:
		err = nil // Ctrl-C is the regular exit
	case ctx.Err() != nil:
		err = errors.New("interrupted")
	}
	if err = errors.Join(err, stopped); err != nil {
		_, _ = fmt.Fprintf(out, "\nquickstart: %s\nLogs are in %s, the simulator's is %s\n", err, q.logDir(),
			q.simulatorLog())
		return 1
	}
	return 0
}

// options are the parsed flags.
type options struct {
	profile                vcdsim.Profile
	keep, realNodes        bool
	workers, controlPlanes int
	dir, cache, assets     string
	timeout                time.Duration

	kubernetes string            // version
	flavor     string            // of the template; empty for the default one
	variables  map[string]string // additional variables of the template
	providers  []stack.Part      // additional providers of Cluster API, such as that of IPAM, which no flavor here uses
	// change modifies the manifest before it is applied. It may be nil.
	change func(manifest []byte) ([]byte, error)
	// wrap returns the program that starts the manager. If it is nil, the manager is started directly.
	wrap func(manager string) (string, error)
	// prepare is called before the cluster is created. It may be nil.
	prepare func(*quickstart) error
}

func parse(args []string, out io.Writer) (options, error) {
	opts := options{kubernetes: programs.KubernetesVersion}
	cache, err := programs.DefaultCache()
	if err != nil {
		return opts, err
	}
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(out)
	profile := flags.String("profile", vcdsim.Fast.Name,
		"how long the simulated VCD takes: instant, fast (a tenth of a real one) or recorded (as a real one)")
	flags.BoolVar(&opts.keep, "keep", false, "stay up until Ctrl-C without a terminal, too")
	flags.BoolVar(&opts.realNodes, "real", false,
		"boot the VMs as Linux systems that become real nodes; needs root and make node-image")
	flags.IntVar(&opts.workers, "workers", 2, "number of workers")
	flags.IntVar(&opts.controlPlanes, "control-planes", 1, "number of control planes: 1, 3 or 5")
	flags.StringVar(&opts.dir, "dir", filepath.Join(cache, "quickstart"), "folder for logs, kubeconfigs and data")
	flags.StringVar(&opts.cache, "cache", cache, "folder for the programs that are built once")
	flags.DurationVar(&opts.timeout, "timeout", 20*time.Minute,
		"how long the cluster may take to come up, and to go away")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(out,
			"Brings a cluster up on a simulated VMware Cloud Director, with the real Cluster API.\n\nFlags:")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	var known bool
	if opts.profile, known = vcdsim.ProfileByName(*profile); !known {
		return opts, fmt.Errorf("--profile %s is none of instant, fast and recorded", *profile)
	}
	if opts.controlPlanes < 1 || opts.controlPlanes%2 == 0 {
		return opts, fmt.Errorf("--control-planes %d: etcd needs an odd number", opts.controlPlanes)
	}
	if opts.workers < 0 {
		return opts, fmt.Errorf("--workers %d: no fewer than none", opts.workers)
	}
	opts.assets = os.Getenv("KUBEBUILDER_ASSETS")
	opts.dir, err = filepath.Abs(opts.dir)
	return opts, err
}
