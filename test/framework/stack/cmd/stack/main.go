// SPDX-License-Identifier: Apache-2.0

// Command stack builds and runs the management cluster of the tests.
//
//	go run ./framework/stack/cmd/stack build   builds the programs and prints their folder
//	go run ./framework/stack/cmd/stack up      starts the management cluster and stays until Ctrl-C
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

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil &&
		!errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("stack", flag.ContinueOnError)
	flags.SetOutput(stderr)
	cache := flags.String("cache", os.Getenv("STACK_CACHE"),
		"folder for built programs (default: one in the user's cache)")
	dir := flags.String("dir", filepath.Join(os.TempDir(), fmt.Sprintf("vcd-stack-%d", os.Getuid())),
		"folder for data, logs and kubeconfig")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(stderr, "usage: stack [flags] build | up")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "build":
		set, err := programs.Build(ctx, programs.Options{Cache: *cache, Out: stderr})
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(stdout, set.Dir())
		return nil
	case "up":
		return up(ctx, stack.Options{Dir: *dir, Cache: *cache, Out: stderr}, stdout)
	default:
		flags.Usage()
		return fmt.Errorf("unknown command %q: use build or up", flags.Arg(0))
	}
}

func up(ctx context.Context, opts stack.Options, stdout io.Writer) error {
	s, err := stack.Start(ctx, opts)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "export KUBECONFIG=%s\nLogs are in %s. Ctrl-C takes everything down.\n", s.Kubeconfig(),
		s.LogDir())
	select {
	case <-ctx.Done():
		err = nil
	case err = <-s.Failed():
	}
	return errors.Join(err, s.Stop())
}
