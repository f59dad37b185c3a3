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

// inVM runs the commands that are about one VM of a running vcdsim-nodes.
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

func vmCommand(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	command, args := args[0], args[1:]
	follow := command == "console" && len(args) > 1 && args[0] == "--follow"
	if follow {
		args = args[1:]
	}
	if len(args) == 0 || command != "exec" && len(args) > 1 || command == "exec" && len(args) < 2 {
		return errUsage
	}
	dir := dirOf(args[0])
	if command == "console" {
		file, err := hypervisor.ConsoleFile(dir, args[0])
		if err != nil {
			return err
		}
		return printFile(ctx, file, follow, out)
	}
	run := args[1:]
	if command == "shell" {
		run = shell(os.Getenv("TERM"))
	}
	cmd, err := hypervisor.Command(ctx, dir, args[0], run...)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	if command == "shell" {
		cmd.Cancel = func() error { return nil } // Ctrl-C is for what runs in it
	}
	return cmd.Run()
}

// shell is a login shell, in which kubectl works on a control plane.
func shell(terminal string) []string {
	return []string{
		"/usr/bin/env", "-i", "HOME=/root", "USER=root", "TERM=" + cmp.Or(terminal, "dumb"),
		"KUBECONFIG=/etc/kubernetes/admin.conf", "/bin/bash", "--login",
	}
}

// dirOf is the state folder that has a VM: of the environment, of vcdsim-nodes or of make quickstart-real.
func dirOf(vm string) string {
	for _, dir := range []string{stateDir(), quickstartDir} {
		if _, err := hypervisor.ConsoleFile(dir, vm); err == nil {
			return dir
		}
	}
	return stateDir()
}

const followEvery = 250 * time.Millisecond

// printFile prints a file, and with follow what is appended to it until ctx ends.
func printFile(ctx context.Context, path string, follow bool, out io.Writer) error {
	file, err := os.Open(path) //nolint:gosec // the VM's
	if err != nil {
		return fmt.Errorf("opening the console: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
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
