// SPDX-License-Identifier: Apache-2.0

// Command vcdsim-nodes runs a simulated VMware Cloud Director whose VMs are booted Linux systems.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/program"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && slices.Contains([]string{"console", "shell", "exec"}, args[0]) {
		os.Exit(inVM(args))
	}
	os.Exit(program.Main(&nodes{}))
}

// inVM runs a command for one VM of a running vcdsim-nodes.
func inVM(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := vmCommand(ctx, args, os.Stdin, os.Stdout)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "vcdsim-nodes:", err)
	return 1
}

var errUsage = errors.New(
	"usage: vcdsim-nodes console [--follow] VM, vcdsim-nodes shell VM, or vcdsim-nodes exec VM COMMAND [ARGUMENT...]")

// A call is a parsed command for one VM.
type call struct {
	command, vm string
	follow      bool
	run         []string // arguments of exec
}

func parseCall(args []string) (call, error) {
	c := call{command: args[0]}
	rest := args[1:]
	if c.command == "console" && len(rest) > 0 && rest[0] == "--follow" {
		c.follow = true
		rest = rest[1:]
	}
	if len(rest) == 0 || (c.command == "exec") != (len(rest) > 1) {
		return c, errUsage
	}
	c.vm = rest[0]
	c.run = rest[1:]
	return c, nil
}

func vmCommand(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	c, err := parseCall(args)
	if err != nil {
		return err
	}
	dir := dirOf(c.vm)
	switch c.command {
	case "console":
		file, err := hypervisor.ConsoleFile(dir, c.vm)
		if err != nil {
			return err
		}
		return printFile(ctx, file, c.follow, out)
	case "shell":
		c.run = shell(os.Getenv("TERM"))
	}
	cmd, err := hypervisor.Command(ctx, dir, c.vm, c.run...)
	if err != nil {
		return err
	}
	cmd.Stdin = in
	cmd.Stdout = out
	cmd.Stderr = os.Stderr
	if c.command == "shell" {
		cmd.Cancel = func() error { return nil } // Ctrl-C is for the program in the VM
	}
	return cmd.Run()
}

// shell returns the command of a login shell, in which kubectl works on a control plane node.
func shell(terminal string) []string {
	return []string{
		"/usr/bin/env",
		"-i",
		"HOME=/root",
		"USER=root",
		"TERM=" + cmp.Or(terminal, "dumb"),
		"KUBECONFIG=/etc/kubernetes/admin.conf",
		"/bin/bash",
		"--login",
	}
}

// dirOf returns the state folder that contains a VM: the one of the environment, of vcdsim-nodes or of make
// quickstart-real.
func dirOf(vm string) string {
	for _, dir := range []string{stateDir(), quickstartDir} {
		if _, err := hypervisor.ConsoleFile(dir, vm); err == nil {
			return dir
		}
	}
	return stateDir()
}

const followEvery = 250 * time.Millisecond

// printFile prints a file. With follow it also prints appended data until ctx ends.
func printFile(ctx context.Context, path string, follow bool, out io.Writer) error {
	file, err := os.Open(path) //nolint:gosec // the VM's
	if err != nil {
		return fmt.Errorf("opening the console: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		if _, err := io.Copy(out, file); err != nil {
			return fmt.Errorf("reading the console: %w", err)
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
