// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A metric is a metric family in Prometheus' text format.
type metric struct {
	name, kind, help string
	samples          map[string]float64 // by labels in text format
}

func (ctl *Control) getMetrics(*api.Request) (*api.Response, error) {
	var b strings.Builder
	for _, m := range ctl.collectMetrics() {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, labels := range slices.Sorted(maps.Keys(m.samples)) {
			fmt.Fprintf(&b, "%s%s %s\n", m.name, labels, strconv.FormatFloat(m.samples[labels], 'f', -1, 64))
		}
	}
	return &api.Response{
		Status:      http.StatusOK,
		Raw:         []byte(b.String()),
		ContentType: "text/plain; version=0.0.4; charset=utf-8",
	}, nil
}

var labelEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labels formats pairs of names and values.
func labels(pairs ...string) string {
	parts := make([]string, 0, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		parts = append(parts, pair[0]+`="`+labelEscape.Replace(pair[1])+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (ctl *Control) collectMetrics() []metric {
	requests := map[string]float64{}
	for of, n := range ctl.Journal.ByStatus() {
		requests[labels("operation", of.Operation, "status",
			cmp.Or(strings.TrimPrefix(strconv.Itoa(of.Status), "0"), "none"))] = float64(n)
	}
	up := map[string]float64{}
	for _, c := range cellStatuses(ctl.Cells) {
		up[labels("cell", strconv.Itoa(c.Number))] = map[bool]float64{true: 1}[c.Up]
	}
	unknown := float64(len(ctl.Journal.UnknownRoutes()))
	ctl.Cloud.Mu.Lock()
	defer ctl.Cloud.Mu.Unlock()
	c := ctl.overviewOfCounts()
	entities := map[string]float64{
		labels("kind", "org"):  float64(c.Orgs),
		labels("kind", "vApp"): float64(c.VApps),
		labels("kind", "vm"):   float64(c.VMs),
		labels("kind", "disk"): float64(c.Disks),
	}
	for path, d := range ctl.Cloud.Store.Documents {
		entities[labels("kind", path)] = float64(len(d))
	}
	return []metric{
		{
			"vcdsim_requests_total",
			"counter",
			"Number of requests by operation and status; status none is a connection that was closed without a response.",
			requests,
		},
		{"vcdsim_tasks", "gauge", "Number of stored tasks by status.", ctl.tasksByStatus()},
		{
			"vcdsim_entities",
			"gauge",
			"Number of entities by kind; those of cloudapi by the path of their collection.",
			entities,
		},
		{"vcdsim_vms_powered_on", "gauge", "Number of VMs that are powered on.", map[string]float64{"": float64(c.VMsOn)}},
		{"vcdsim_sessions", "gauge", "Number of open sessions.", map[string]float64{"": float64(c.Sessions)}},
		{"vcdsim_fault_rules", "gauge", "Number of active fault rules.", map[string]float64{"": float64(c.Faults)}},
		{
			"vcdsim_unknown_routes",
			"gauge",
			"Requested routes that are not simulated.",
			map[string]float64{"": unknown},
		},
		{"vcdsim_cell_up", "gauge", "Availability of a cell: 1 if it is up, otherwise 0.", up},
		{
			"vcdsim_clock_seconds",
			"gauge",
			"The simulated time, in seconds since 1970.",
			map[string]float64{"": float64(ctl.Cloud.Clock.Now().Unix())},
		},
	}
}

// tasksByStatus counts the stored tasks, with a number for each status. The caller holds the lock of the cloud.
func (ctl *Control) tasksByStatus() map[string]float64 {
	tasks := map[string]float64{}
	for _, status := range []store.TaskStatus{
		store.TaskQueued, store.TaskRunning, store.TaskSuccess, store.TaskError, store.TaskAborted, store.TaskCanceled,
	} {
		tasks[labels("status", string(status))] = 0
	}
	for _, t := range ctl.Cloud.Store.Tasks {
		tasks[labels("status", string(t.Status))]++
	}
	return tasks
}
