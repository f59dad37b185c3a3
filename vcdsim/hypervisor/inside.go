// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ConsoleFile returns the path of the console output of a VM of a running hypervisor. vm is its name or ID; dir is
// the state folder of the hypervisor.
func ConsoleFile(dir, vm string) (string, error) {
	f, err := findVM(dir, vm)
	return f.console(), err
}

// Command returns a command that runs as root in a VM that is on.
func Command(ctx context.Context, dir, vm string, args ...string) (*exec.Cmd, error) {
	f, err := findVM(dir, vm)
	if err != nil {
		return nil, err
	}
	launcher := strings.TrimSpace(readFile(f.path("pid")))
	// The file remains after a simulator was killed, and another process may have reused the PID.
	if launcher == "" || !isNspawnOf(readFile(filepath.Join("/proc", launcher, "cmdline")), f) {
		return nil, fmt.Errorf("VM %s is off", vm)
	}
	first, _, _ := strings.Cut(readFile(filepath.Join("/proc", launcher, "task", launcher, "children")), " ")
	if first == "" {
		return nil, fmt.Errorf("VM %s is not up yet, or this kernel does not list the children of processes", vm)
	}
	enter := []string{"--target", first, "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--"}
	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...), nil //nolint:gosec // the caller is root
}

// isNspawnOf reports whether a command line is that of systemd-nspawn for a VM.
func isNspawnOf(cmdline string, f files) bool {
	args := strings.Split(cmdline, "\x00")
	return filepath.Base(args[0]) == nspawn && slices.Contains(args, "--directory="+f.root())
}

// CopyLogs copies the console output of a hypervisor's VMs, their cloud-init output and the logs of their pods to a
// folder.
func CopyLogs(dir, to string) error {
	all, err := filepath.Glob(filepath.Join(dir, "vms", "*"))
	if err != nil {
		return fmt.Errorf("reading the state folder: %w", err)
	}
	var errs []error
	for _, folder := range all {
		f := files{folder}
		name := filepath.Base(cmp.Or(strings.TrimSpace(readFile(f.path("name"))), filepath.Base(folder)))
		for source, target := range f.logs() {
			if err := copyLog(source, filepath.Join(to, name+"-"+target)); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, wrap("copying the log of a VM", err))
			}
		}
	}
	return errors.Join(errs...)
}

const podLogs = "upper/var/log/pods"

// logs returns the paths of the logs of a VM and the names of their copies.
func (f files) logs() map[string]string {
	out := map[string]string{
		f.console(): "console.log",
		f.path("upper/var/log/cloud-init-output.log"): "cloud-init.log",
	}
	pods, _ := filepath.Glob(f.path(podLogs + "/*/*/*.log")) // the pattern is valid
	for _, source := range pods {
		container, file := filepath.Split(strings.TrimPrefix(source, f.path(podLogs)+"/"))
		out[source] = filepath.Join("pods", strings.ReplaceAll(container, "/", "_")+file)
	}
	return out
}

func copyLog(source, target string) error {
	content, err := os.ReadFile(source) //nolint:gosec // from the VM's folder
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o600) //nolint:gosec // in the caller's folder
}

func findVM(dir, vm string) (files, error) {
	all, err := filepath.Glob(filepath.Join(dir, "vms", "*"))
	if err != nil {
		return files{}, fmt.Errorf("reading the state folder: %w", err)
	}
	var names []string
	for _, folder := range all {
		f := files{folder}
		name := strings.TrimSpace(readFile(f.path("name")))
		if vm == name || vm == filepath.Base(folder) {
			return f, nil
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return files{}, errors.New("no VM was powered on")
	}
	return files{}, fmt.Errorf("VM %s does not exist; existing VMs: %s", vm, strings.Join(names, ", "))
}
