// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// printMemory prints the memory usage of the VMs, and of this program with its management cluster.
func (q *quickstart) printMemory() {
	vms, rest := memoryOf(readProcesses(), os.Getpid())
	load, _, _ := strings.Cut(readText("/proc/loadavg"), " ")
	q.printf("Memory: VMs %d MiB, management cluster and simulator %d MiB; load average %s", vms>>20, rest>>20, load)
}

// A proc is a process. Its memory is in bytes, without that of its children.
type proc struct {
	name   string
	parent int
	memory int64
}

// memoryOf sums the memory of a process and its descendants in bytes, separately for VMs and the rest.
func memoryOf(all map[int]proc, root int) (vms, rest int64) {
	for pid, p := range all {
		inVM := false
		below := false
		for at := pid; at > 1 && !below; at = all[at].parent {
			inVM = inVM || all[at].name == "systemd-nspawn"
			below = at == root
		}
		switch {
		case below && inVM:
			vms += p.memory
		case below:
			rest += p.memory
		}
	}
	return vms, rest
}

// readProcesses returns the processes of the machine. It returns none on systems without /proc.
func readProcesses() map[int]proc {
	all := map[int]proc{}
	files, _ := filepath.Glob("/proc/[0-9]*/status") // the pattern is valid
	for _, file := range files {
		var p proc
		for line := range strings.Lines(readText(file)) {
			key, value, _ := strings.Cut(line, ":")
			value = strings.TrimSpace(value)
			switch key {
			case "Name":
				p.name = value
			case "PPid":
				p.parent, _ = strconv.Atoi(value)
			case "VmRSS": // counts shared pages once per process
				var kib int64
				_, _ = fmt.Sscan(value, &kib)
				p.memory += kib << 10
			}
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			all[pid] = p
		}
	}
	return all
}

func readText(path string) string {
	data, err := os.ReadFile(path) //nolint:gosec // a kernel file
	if err != nil {
		return ""
	}
	return string(data)
}
