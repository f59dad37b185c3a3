// SPDX-License-Identifier: Apache-2.0

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// A quickstart is one run of the command.
type quickstart struct {
	options

	out         *os.File
	interactive bool
	started     time.Time
	up          bool // the cluster has been available
	screen      screen

	root       string
	programs   *programs.Set
	components []byte // content of infrastructure-components.yaml
	unlock     func()
	site       *simsite.Site
	booted     *booted // nil without --real
	website    string  // URL of the website in a booted cluster
	stack      *stack.Stack
	client     client.Client
}

func newQuickstart(opts options, out *os.File) *quickstart {
	q := &quickstart{options: opts, out: out, started: time.Now()}
	q.screen.quickstart = q
	return q
}

// run runs all steps in order.
func (q *quickstart) run(ctx context.Context) error {
	if err := q.bringUp(ctx); err != nil {
		return err
	}
	if q.staysUp() {
		return q.waitForExit(ctx)
	}
	return q.deleteCluster(ctx)
}

// bringUp runs the steps until the cluster is usable.
func (q *quickstart) bringUp(ctx context.Context) error {
	if err := q.startManagement(ctx); err != nil {
		return err
	}
	return inOrder(ctx, q.prepareSite, q.createCluster, q.awaitCluster, q.serveWebsite, q.summary)
}

// startManagement runs the steps until the management cluster can create clusters.
func (q *quickstart) startManagement(ctx context.Context) error {
	return inOrder(ctx, q.checkReal, q.lock, q.build, q.startSimulator, q.startStack, q.installProvider)
}

// inOrder runs steps until one fails.
func inOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (q *quickstart) staysUp() bool {
	return q.interactive || q.keep
}

// lock locks the folder, so that only one run uses it.
func (q *quickstart) lock(context.Context) error {
	if err := os.MkdirAll(q.dir, 0o750); err != nil {
		return fmt.Errorf("creating the directory of the run: %w", err)
	}
	unlock, err := process.Lock(filepath.Join(q.dir, "quickstart.lock"))
	if locked := (*process.LockedError)(nil); errors.As(err, &locked) {
		return fmt.Errorf("another quickstart (%s) runs in %s: end it, or choose another folder with --dir",
			locked.Holder, q.dir)
	}
	q.unlock = unlock
	return err
}

func (q *quickstart) logDir() string {
	return filepath.Join(q.dir, "logs")
}

// keepLogs copies the logs that are removed with the VMs.
func (q *quickstart) keepLogs() error {
	if q.booted == nil {
		return nil
	}
	return q.booted.keepLogs(filepath.Join(q.logDir(), "vms"))
}

func (q *quickstart) simulatorLog() string {
	return filepath.Join(q.dir, "simulator.log")
}

// printf prints a line with the time since the start.
func (q *quickstart) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(q.out, "[%4.0fs] %s\n", time.Since(q.started).Seconds(), fmt.Sprintf(format, args...))
}

// during prints a description and runs an action. It repeats the description every 15 s.
func (q *quickstart) during(what string, do func() error) error {
	q.printf("%s", what)
	done := make(chan error, 1)
	go func() { done <- do() }()
	ticker := time.NewTicker(15 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			q.printf("%s ...", what)
		}
	}
}

// newClient creates the client that reads the progress.
func (q *quickstart) newClient() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), infrav1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	q.client, err = client.New(q.stack.RESTConfig(), client.Options{Scheme: scheme})
	return err
}

// waitForExit waits for Ctrl-C or the failure of a program.
func (q *quickstart) waitForExit(ctx context.Context) error {
	_, _ = fmt.Fprintln(q.out, "\nCtrl-C takes everything down.")
	pressed, restore := interrupts(os.Stdin)
	defer func() {
		restore()
		_, _ = fmt.Fprintln(q.out, "\nTaking everything down.")
	}()
	select {
	case <-pressed:
		return nil
	case <-ctx.Done():
		return nil
	case err := <-q.stack.Failed():
		return err
	}
}

// close stops all programs.
func (q *quickstart) close() error {
	var errs []error
	if q.stack != nil {
		errs = append(errs, q.stack.Stop())
	}
	if q.site != nil {
		errs = append(errs, q.site.Close())
	}
	if q.booted != nil {
		errs = append(errs, q.booted.close())
	}
	if q.unlock != nil {
		q.unlock()
	}
	return errors.Join(errs...)
}
