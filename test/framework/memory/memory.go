// SPDX-License-Identifier: Apache-2.0

// Package memory measures the resident memory of processes on Linux.
package memory

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Use is the resident memory of a process, in MiB.
type Use struct {
	Peak    float64 `json:"peakMiB"`
	Private float64 `json:"privateMiB"` // heap, stacks and other memory without a file
	Binary  float64 `json:"binaryMiB"`  // the part of the binary that is mapped, which the kernel can drop
}

// Of returns the memory that a process uses, and its peak so far. See proc_pid_status(5): VmHWM, RssAnon, RssFile.
func Of(pid int) (Use, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Use{}, err
	}
	figures := figuresOf(string(status))
	if figures["VmHWM"] == 0 {
		return Use{}, fmt.Errorf("process %d has no memory", pid)
	}
	return Use{
		Peak:    figures["VmHWM"],
		Private: figures["RssAnon"],
		Binary:  figures["RssFile"],
	}, nil
}

// figuresOf returns the sizes in the status of a process, in MiB.
func figuresOf(status string) map[string]float64 {
	figures := map[string]float64{}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		kib, isSize := strings.CutSuffix(strings.TrimSpace(value), " kB")
		if !isSize {
			continue
		}
		size, err := strconv.ParseFloat(kib, 64)
		if err != nil {
			continue
		}
		figures[name] = size / 1024
	}
	return figures
}

// String implements fmt.Stringer.
func (u Use) String() string {
	return fmt.Sprintf("peak %.1f MiB; now %.1f MiB private and %.1f MiB of its binary", u.Peak, u.Private, u.Binary)
}
