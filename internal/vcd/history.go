// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// History returns the tasks of all users on an object, given by URN, from VCD's task log. It returns those that the
// user may see and that VCD has not deleted yet. They do not contain the reasons of failures.
func (ts *Tasks) History(ctx context.Context, id string) ([]Task, error) {
	return ts.logged(ctx, fiql.AllOf(fiql.Is("object", id)))
}

// Since lists the tasks of all users that VCD started after a time and that the user may see.
func (ts *Tasks) Since(ctx context.Context, after time.Time) ([]Task, error) {
	filter := "startDate=gt=" + fiql.Escape(after.UTC().Format("2006-01-02T15:04:05.000Z"))
	return ts.logged(ctx, filter)
}

func (ts *Tasks) logged(ctx context.Context, filter string) ([]Task, error) {
	records, err := api.QueryTasks(ctx, ts.client, filter)
	tasks := make([]Task, 0, len(records))
	for _, record := range records {
		tasks = append(tasks, Task{
			ID:        urn.Of(urn.Task, record.HREF),
			Operation: record.Name,
			Owner:     urn.Of("", record.Object),
			State:     taskState(record.Status),
			Progress:  record.Progress,
			Started:   wire.Time(record.StartDate),
			Ended:     wire.Time(record.EndDate),
		})
	}
	return tasks, err
}

// deletions are the operations that delete a VM or a vApp, by the kind of their object. Other operations that delete
// something, such as metadata or a VM in a vApp, do not delete their object.
var deletions = map[string][]string{
	urn.VApp: {"vdcDeleteVapp", "vappDelete"},
	urn.VM:   {"vappDeleteVm", "vdcDeleteVm", "vmDelete"},
}

// deletes reports whether the task deleted its VM or vApp.
func (t Task) deletes() bool {
	kind := urn.VM
	if strings.HasPrefix(t.Owner, "urn:vcloud:"+urn.VApp+":") {
		kind = urn.VApp
	}
	return t.State == TaskSucceeded &&
		slices.ContainsFunc(deletions[kind], func(op string) bool { return strings.EqualFold(op, t.Operation) })
}

// Undeploys reports whether the task undeploys its object. A running vApp is undeployed before it is deleted.
func (t Task) Undeploys() bool { return strings.HasPrefix(t.Operation, "vappUndeploy") }

// ShutsDown reports whether the task waits for a guest to shut down.
func (t Task) ShutsDown() bool { return strings.Contains(t.Operation, "Shutdown") }

// CancelTask requests the cancellation of a task. The task may finish later or continue, because VCD cannot cancel
// every task.
func (ts *Tasks) CancelTask(ctx context.Context, id string) error {
	_, err := ts.client.Do(ctx, api.Call{Method: http.MethodPost, Path: urn.Path(urn.Task, id) + "/action/cancel"})
	return err
}
