// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"errors"
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Finish ends a task with the effect of its operation or of a fault rule, and unlocks its entities.
func (ts *Tasks) Finish(id string) {
	t := ts.Cloud.Store.Tasks[id]
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
			ts.Cloud.Alarms.After(f.Delay, store.Alarm{Bell: BellTask, ID: t.ID})
		}
	case f.AbortTask:
		ts.Abort(t, f.Message)
	default:
		ts.markResidue(t)
		ts.End(t, store.TaskError, f.TaskError())
	}
}

// fault returns the fault rule for a task that is about to end, or nil if none applies.
func (ts *Tasks) fault(t *store.Task) *faults.Fault {
	if t.Stuck || ts.Faults.Empty() {
		return nil
	}
	of := faults.Subject{
		Task:      true,
		Operation: t.OperationName,
		Cell:      t.Cell,
		User:      t.UserName,
		Entities:  []string{t.Owner.ID, t.Owner.Name, t.Work.VApp, t.Work.VM, t.Work.Disk},
	}
	for _, id := range append(slices.Clone(t.Locks), store.Bare(t.Work.Document)) {
		of.Entities = append(of.Entities, ts.Names(id)...)
	}
	if org := ts.Cloud.Store.Org(t.OrgID); org != nil {
		of.Org = org.Name
	}
	return ts.Faults.Take(func(f *faults.Fault) bool { return f.Matches(of) })
}

// complete runs the operation of a task and ends the task.
func (ts *Tasks) complete(t *store.Task) {
	err := ts.Operations[t.Work.Op].run(ts.Cloud, t)
	if err == nil {
		ts.End(t, store.TaskSuccess, nil)
		return
	}
	var refusal *store.Refusal
	if !errors.As(err, &refusal) {
		refusal = store.Refuse(http.StatusInternalServerError, store.CodeInternal, "%s", err)
	}
	ts.markResidue(t)
	ts.End(t, store.TaskError, refusal)
}

// Abort ends a task as VCD does if the cell that ran it went down.
func (ts *Tasks) Abort(t *store.Task, message string) {
	if message == "" {
		message = "The task was aborted."
	}
	ts.markResidue(t)
	ts.End(t, store.TaskAborted, store.Refuse(http.StatusInternalServerError, "TASK_ABORTED", "%s", message))
}
