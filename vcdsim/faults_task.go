// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"errors"
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// fault returns the rule for a task that is about to end, nil if none applies.
func (ts *tasks) fault(t *store.Task) *Fault {
	if t.Stuck || ts.faults.empty() {
		return nil
	}
	of := subject{
		task:      true,
		operation: t.OperationName,
		cell:      t.Cell,
		user:      t.UserName,
		entities:  []string{t.Owner.ID, t.Owner.Name, t.Work.VApp, t.Work.VM, t.Work.Disk},
	}
	for _, id := range append(slices.Clone(t.Locks), store.Bare(t.Work.Document)) {
		of.entities = append(of.entities, ts.names(id)...)
	}
	if org := ts.cloud.store.Org(t.OrgID); org != nil {
		of.org = org.Name
	}
	return ts.faults.take(func(f *Fault) bool { return f.matches(of) })
}

// finish ends a task: it does the work, or what a fault rule says, and frees the entities.
func (ts *tasks) finish(id string) {
	t := ts.cloud.store.Tasks[id]
	if t == nil || t.Done() {
		return
	}
	f := ts.fault(t)
	switch {
	case f == nil:
		ts.complete(t)
	case f.StickTask:
		t.Stuck = true
		t.Status = store.TaskRunning
		if f.Delay > 0 {
			ts.cloud.alarms.after(f.Delay, store.Alarm{Bell: bellTask, ID: t.ID})
		}
	case f.AbortTask:
		ts.abort(t, f.Message)
	default:
		ts.residue(t)
		ts.end(t, store.TaskError, f.taskError())
	}
}

// complete does the work of a task.
func (ts *tasks) complete(t *store.Task) {
	err := ts.operations[t.Work.Op].run(ts.cloud, t)
	if err == nil {
		ts.end(t, store.TaskSuccess, nil)
		return
	}
	var refusal *store.Refusal
	if !errors.As(err, &refusal) {
		refusal = store.Refuse(http.StatusInternalServerError, store.CodeInternal, "%s", err)
	}
	ts.residue(t)
	ts.end(t, store.TaskError, refusal)
}

// abort ends a task as VCD does when the cell that ran it went away.
func (ts *tasks) abort(t *store.Task, message string) {
	if message == "" {
		message = "The task was aborted."
	}
	ts.residue(t)
	ts.end(t, store.TaskAborted, store.Refuse(http.StatusInternalServerError, "TASK_ABORTED", "%s", message))
}

func (f *Fault) taskError() *store.Refusal {
	status := f.Status
	code := f.Code
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if code == "" {
		code = store.CodeInternal
	}
	return store.Refuse(status, code, "%s", f.Message)
}
