// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of times in /proc/PID/stat. It is the same on every Linux that Go supports.
const ticksPerSecond = 100

// ownProcess is the name of this process in the report. Its work does not exist in a real installation, or runs
// elsewhere.
const ownProcess = "bench (simulator, simulated clusters, driver)"

// cpuSeconds returns the processor time of this process and its children so far, by program name.
func cpuSeconds() (map[string]float64, error) {
	used := map[string]float64{}
	err := children(func(pid int, name string, stat []string) {
		user, _ := strconv.ParseFloat(stat[11], 64)
		system, _ := strconv.ParseFloat(stat[12], 64)
		if pid == os.Getpid() {
			name = ownProcess
		}
		used[name] += (user + system) / ticksPerSecond
	})
	return used, err
}

// children calls f for this process and each of its children, with the name of the program and the fields after the
// name in the stat file.
func children(f func(pid int, name string, stat []string)) error {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return err
	}
	for _, path := range stats {
		content, err := os.ReadFile(path) //nolint:gosec // of the kernel
		if err != nil {
			continue // The process has exited.
		}
		begin := strings.IndexByte(string(content), '(')
		end := strings.LastIndexByte(string(content), ')')
		fields := strings.Fields(string(content[end+1:]))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(content[:begin])))
		if parent, _ := strconv.Atoi(fields[1]); parent != os.Getpid() && pid != os.Getpid() {
			continue
		}
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			continue
		}
		f(pid, filepath.Base(program), fields)
	}
	return nil
}

func subtract(after, before map[string]float64) map[string]float64 {
	difference := map[string]float64{}
	for name, used := range after {
		difference[name] = used - before[name]
	}
	return difference
}

// A usage is the use of resources since a usage before it.
type usage struct {
	time  time.Time
	cpu   map[string]float64 // processor time in seconds, by program
	calls map[string]int     // calls to VCD, by operation
}

// use returns the resources that were used so far.
func (b *bench) use() (usage, error) {
	cpu, err := cpuSeconds()
	return usage{time: time.Now(), cpu: cpu, calls: b.site.Simulator.Counters()}, err
}

// since returns the resources that were used since another time.
func (u usage) since(before usage) spent {
	calls := map[string]int{}
	for operation, n := range u.calls {
		calls[operation] = n - before.calls[operation]
	}
	return spent{
		Seconds: u.time.Sub(before.time).Seconds(),
		CPU:     subtract(u.cpu, before.cpu),
		Calls:   calls,
	}
}

// spent is the use of resources in a period.
type spent struct {
	Seconds float64            `json:"seconds"`
	CPU     map[string]float64 `json:"cpuSeconds"`
	Calls   map[string]int     `json:"calls"`
}

// calls returns the number of all calls to VCD.
func (s spent) calls() int {
	sum := 0
	for _, n := range s.Calls {
		sum += n
	}
	return sum
}

// cpu returns the processor time of all programs, in seconds.
func (s spent) cpu() float64 {
	sum := 0.0
	for _, used := range s.CPU {
		sum += used
	}
	return sum
}

// loadAverage returns the load of the machine.
func loadAverage() string {
	load, _ := os.ReadFile("/proc/loadavg")
	return strings.TrimSpace(string(load))
}
