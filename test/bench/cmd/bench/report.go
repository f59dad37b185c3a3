// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/memory"
)

// managerProgram is the name of this provider's binary.
const managerProgram = "manager"

// A result holds the measurements of one run.
type result struct {
	Setup    string `json:"setup"`
	Profile  string `json:"profile"`
	CPUs     int    `json:"cpus"`
	Load     string `json:"load"` // at the end of the creation
	Clusters int    `json:"clusters"`
	Machines int    `json:"machines"`
	// Manager is the memory of the manager after the creation.
	Manager memory.Use `json:"managerMemory"`
	// Creation lasts from the first object until all machines are up.
	Creation spent `json:"creation"`
	// Rest is the period after the creation. It has no duration if it was not measured.
	Rest spent `json:"rest"`
}

// perMachine returns the share of one machine.
func (r result) perMachine(total float64) float64 { return total / float64(r.Machines) }

// restCallsPerHour returns the calls to VCD in one hour at rest.
func (r result) restCallsPerHour() float64 { return float64(r.Rest.calls()) / r.Rest.Seconds * 3600 }

// restCPU returns the part of one processor that the manager uses at rest, in percent.
func (r result) restCPU() float64 { return 100 * r.Rest.CPU[managerProgram] / r.Rest.Seconds }

// print writes the table of one result.
func (r result) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	calls := r.Creation.calls()
	cpu := r.Creation.cpu()
	busy := cpu / r.Creation.Seconds / float64(r.CPUs)
	line("\nset-up", "%s, profile %s, %d CPUs, load %s", r.Setup, r.Profile, r.CPUs, r.Load)
	line("clusters, machines", "%d, %d", r.Clusters, r.Machines)
	line("time until all are ready", "%.0f s", r.Creation.Seconds)
	line("manager: memory", "%s", r.Manager)
	line("manager: processor time", "%.1f s", r.Creation.CPU[managerProgram])
	line("VCD: calls", "%d, %.1f per machine, %.1f per second", calls, r.perMachine(float64(calls)),
		float64(calls)/r.Creation.Seconds)
	line("VCD: logins", "%d", r.Creation.Calls["POST /cloudapi/1.0.0/sessions"])
	for _, operation := range largest(r.Creation.Calls, 8) {
		line("  "+operation, "%d", r.Creation.Calls[operation])
	}
	line("processors", "%.0f %% busy with the programs below", 100*busy)
	programs := largest(r.Creation.CPU, len(r.Creation.CPU))
	for _, name := range programs {
		line("  "+name, "%.1f s, %.0f %%", r.Creation.CPU[name], 100*r.Creation.CPU[name]/cpu)
	}
	line("bottleneck", "%s", bottleneck(programs[0], busy, float64(calls)/r.Creation.Seconds))
	if r.Rest.Seconds > 0 {
		line("at rest", "%.0f s, %.0f calls per hour, %.1f %% of a processor for the manager", r.Rest.Seconds,
			r.restCallsPerHour(), r.restCPU())
		for _, operation := range largest(r.Rest.Calls, 8) {
			line("  "+operation, "%d", r.Rest.Calls[operation])
		}
	}
	return w.Flush()
}

// largest returns the keys of the n largest values, largest first. It omits zeros.
func largest[N int | float64](values map[string]N, n int) []string {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b))
	})
	keys = slices.DeleteFunc(keys, func(key string) bool { return values[key] == 0 })
	return keys[:min(len(keys), n)]
}

// bottleneck returns the resource that limited a run.
func bottleneck(busiest string, busy, callsPerSecond float64) string {
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

// result combines the measurements of a run.
func (b *bench) result(machines int, creation spent) (result, error) {
	manager, err := memory.Of(b.management.Manager.PID())
	return result{
		Setup:    b.setup,
		Profile:  b.profile.Name,
		CPUs:     runtime.NumCPU(),
		Load:     loadAverage(),
		Clusters: b.clusters,
		Machines: machines,
		Manager:  manager,
		Creation: creation,
	}, err
}
