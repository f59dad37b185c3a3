package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// quickstart is one run.
type quickstart struct {
	options

	out         *os.File
	interactive bool
	began       time.Time
	root        string
	up          bool // The cluster was available.

	log       *os.File
	workloads *workload.Workloads
	simulator *vcdsim.Simulator
	stack     *stack.Stack
	client    client.Client
}

// run does everything in order.
func (q *quickstart) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		q.build, q.startSimulator, q.startStack, q.installProvider, q.createCluster, q.awaitCluster, q.summary,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if q.interactive || q.keep {
		return q.stay(ctx)
	}
	return q.deleteCluster(ctx)
}

func (q *quickstart) logDir() string {
	return filepath.Join(q.dir, "logs")
}

// say prints a line with the time since the start.
func (q *quickstart) say(format string, args ...any) {
	fmt.Fprintf(q.out, "[%4.0fs] %s\n", time.Since(q.began).Seconds(), fmt.Sprintf(format, args...))
}

// newClient knows the kinds that the progress is read from.
func (q *quickstart) newClient() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), infrav1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	q.client, err = client.New(q.stack.RESTConfig(), client.Options{Scheme: scheme})
	return err
}

// stay waits for Ctrl-C, or for something to break.
func (q *quickstart) stay(ctx context.Context) error {
	fmt.Fprintln(q.out, "\nCtrl-C takes everything down.")
	select {
	case <-ctx.Done():
		fmt.Fprintln(q.out, "\nTaking everything down.")
		return nil
	case err := <-q.stack.Failed():
		return err
	}
}

// close takes down whatever is up.
func (q *quickstart) close() error {
	var errs []error
	if q.stack != nil {
		errs = append(errs, q.stack.Stop())
	}
	if q.simulator != nil {
		errs = append(errs, q.simulator.Close())
	}
	if q.workloads != nil {
		errs = append(errs, q.workloads.Close())
	}
	if q.log != nil {
		errs = append(errs, q.log.Close())
	}
	return errors.Join(errs...)
}
