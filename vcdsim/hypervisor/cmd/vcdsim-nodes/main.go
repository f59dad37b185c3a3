// Command vcdsim-nodes runs a simulated VMware Cloud Director whose VMs are booted Linux systems.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/program"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && slices.Contains([]string{"console", "exec"}, args[0]) {
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

func vmCommand(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	dir := stateDir()
	switch {
	case args[0] == "console" && len(args) == 2:
		file, err := hypervisor.ConsoleFile(dir, args[1])
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file) //nolint:gosec // the VM's
		if err != nil {
			return fmt.Errorf("reading the console: %w", err)
		}
		_, err = out.Write(data)
		return err
	case args[0] == "exec" && len(args) > 2:
		cmd, err := hypervisor.Command(ctx, dir, args[1], args[2:]...)
		if err != nil {
			return err
		}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
		return cmd.Run()
	}
	return errors.New("usage: vcdsim-nodes console VM, or vcdsim-nodes exec VM COMMAND [ARGUMENT...]")
}
