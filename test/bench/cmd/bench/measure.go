// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
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

// residentMemory returns a figure of the resident memory of a program that this process started, in MiB. VmHWM is the
// peak, RssAnon the current private memory, and RssFile the part of the binary that is currently mapped.
func residentMemory(program, figure string) float64 {
	var found float64
	_ = children(func(pid int, name string, _ []string) {
		if name != program {
			return
		}
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for line := range strings.Lines(string(content)) {
			if value, ok := strings.CutPrefix(line, figure+":"); ok {
				kib, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
				found = kib / 1024
			}
		}
	})
	return found
}

func subtract(after, before map[string]float64) map[string]float64 {
	difference := map[string]float64{}
	for name, used := range after {
		difference[name] = used - before[name]
	}
	return difference
}

// managerProgram is the name of this provider's binary.
const managerProgram = "manager"

// report prints the table of results and the bottleneck.
func (b *bench) report(took time.Duration, machines int, cpu map[string]float64) error {
	calls := 0
	counters := b.site.Simulator.Counters()
	for _, n := range counters {
		calls += n
	}
	load, _ := os.ReadFile("/proc/loadavg")
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	line("\nset-up", "%s, profile %s, %d CPUs, load %s", b.setup, b.profile.Name, runtime.NumCPU(),
		strings.TrimSpace(string(load)))
	line("clusters, machines", "%d, %d", b.clusters, machines)
	line("time until all are ready", "%.0f s", took.Seconds())
	line("manager: peak memory", "%.1f MiB; at the end %.1f MiB private and %.1f MiB of its binary",
		residentMemory(managerProgram, "VmHWM"), residentMemory(managerProgram, "RssAnon"),
		residentMemory(managerProgram, "RssFile"))
	line("manager: processor time", "%.1f s", cpu[managerProgram])
	line("VCD: calls", "%d, %.1f per machine, %.1f per second", calls, float64(calls)/float64(machines),
		float64(calls)/took.Seconds())
	line("VCD: logins", "%d", counters["POST /cloudapi/1.0.0/sessions"])
	frequent := slices.SortedFunc(maps.Keys(counters), func(a, b string) int { return counters[b] - counters[a] })
	for _, operation := range frequent[:min(len(frequent), 8)] {
		line("  "+operation, "%d", counters[operation])
	}
	total := 0.0
	for _, used := range cpu {
		total += used
	}
	busiest := slices.SortedFunc(maps.Keys(cpu), func(a, b string) int { return cmp.Compare(cpu[b], cpu[a]) })
	line("processors", "%.0f %% busy with the programs below", 100*total/took.Seconds()/float64(runtime.NumCPU()))
	for _, name := range busiest {
		line("  "+name, "%.1f s, %.0f %%", cpu[name], 100*cpu[name]/total)
	}
	line("bottleneck", "%s",
		b.bottleneck(busiest[0], total/took.Seconds()/float64(runtime.NumCPU()), float64(calls)/took.Seconds()))
	return w.Flush()
}

// bottleneck returns the resource that limited a run.
func (b *bench) bottleneck(busiest string, busy, callsPerSecond float64) string {
	switch {
	case busy > 0.8:
		return "processors, mostly " + busiest
	case callsPerSecond > 0.8*defaultRate:
		return fmt.Sprintf("the manager's limit of %d calls per second to a VCD", defaultRate)
	}
	return "waits: polls of tasks, retries of Cluster API, other work on this machine"
}

// defaultRate is the manager's default of --vcd-requests-per-second.
const defaultRate = 20
