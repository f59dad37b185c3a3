package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// ConsoleFile returns the file with what a VM of a running hypervisor wrote to its console. The VM is given by name or
// id, the hypervisor by its state folder.
func ConsoleFile(dir, vm string) (string, error) {
	f, err := findVM(dir, vm)
	return f.console(), err
}

// Command returns a command in a VM that is on, as root.
func Command(ctx context.Context, dir, vm string, args ...string) (*exec.Cmd, error) {
	f, err := findVM(dir, vm)
	if err != nil {
		return nil, err
	}
	launcher := strings.TrimSpace(readFile(f.path("pid")))
	if launcher == "" {
		return nil, fmt.Errorf("VM %s is off", vm)
	}
	first, _, _ := strings.Cut(readFile(filepath.Join("/proc", launcher, "task", launcher, "children")), " ")
	if first == "" {
		return nil, fmt.Errorf("VM %s is not up yet, or this kernel does not list the children of processes", vm)
	}
	enter := []string{"--target", first, "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--"}
	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...), nil //nolint:gosec // for its caller, who is root
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
	return files{}, fmt.Errorf("there is no VM %s, but %s", vm, strings.Join(names, ", "))
}
