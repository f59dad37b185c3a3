// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// maxTasks is the maximum number of finished tasks that are kept. VCD keeps them for 90 days.
const maxTasks = 20000

// Tasks starts and ends operations, and keeps their entities busy in between.
type Tasks struct {
	Cloud      *Cloud
	Operations map[string]Operation
	Faults     *faults.Faults
	Names      func(id string) []string // returns the ID and the name of an entity
}

// A Caller identifies the user, the request and the cell that start a task.
type Caller struct {
	OrgID     string
	UserID    string
	User      string
	RequestID string
	Cell      int
}

// Start starts an operation on an entity. by is nil if no request started it. The caller must have checked that no
// entity in locks is busy.
func (ts *Tasks) Start(by *Caller, w store.Work, owner store.Entity, locks []string) *store.Task {
	op := ts.Operations[w.Op]
	d := ts.Cloud.Profile.Jittered(op.duration, op.spread, ts.Cloud.IDs.Rand)
	if n := len(w.VMs); n > 1 && op.spread > 0 {
		d = time.Duration(float64(d) * (1 + ts.Cloud.Assume.RecomposeExtraItem*float64(n-1)))
	}
	now := ts.Cloud.Clock.Now()
	t := &store.Task{
		ID:            ts.Cloud.IDs.Next("task"),
		OperationName: op.name,
		Owner:         owner,
		Operation:     fmt.Sprintf("%s %s(%s)", op.verb, owner.Name, owner.ID),
		Status:        store.TaskQueued,
		Started:       now,
		Due:           now.Add(d),
		Locks:         locks,
		Work:          w,
		UserName:      "system",
	}
	if by != nil {
		t.OrgID = cmp.Or(ts.Cloud.Store.OrgOf(owner), by.OrgID)
		t.RequestID = by.RequestID
		t.Cell = by.Cell
		t.UserID = by.UserID
		t.UserName = by.User
	}
	if v := ts.Cloud.Store.VAppOf(owner); v != nil {
		t.OfUser = v.OwnerID
	}
	t.Number = ts.Cloud.IDs.Count["task"]
	t.Waiting = !awaitsEvent(w.Op) && !ts.mayRun(t)
	ts.Cloud.Store.Tasks[t.ID] = t
	ts.lock(t)
	ts.trim()
	if !t.Waiting {
		ts.finishAfter(t, d)
	}
	return t
}

// finishAfter finishes the task after d, or for 0 as soon as the response is complete. Tasks that await an event only
// start.
func (ts *Tasks) finishAfter(t *store.Task, d time.Duration) {
	if awaitsEvent(t.Work.Op) {
		t.Status = store.TaskRunning
		return
	}
	ts.FinishIn(t, d)
}

// FinishIn finishes the task after d, or for 0 as soon as the response is complete.
func (ts *Tasks) FinishIn(t *store.Task, d time.Duration) {
	if d <= 0 {
		ts.Cloud.Pending = append(ts.Cloud.Pending, func() { ts.Finish(t.ID) })
		return
	}
	ts.Cloud.Pending = append(ts.Cloud.Pending, func() {
		if t.Status == store.TaskQueued {
			t.Status = store.TaskRunning
		}
	})
	ts.Cloud.Alarms.After(d, store.Alarm{Bell: BellTask, ID: t.ID})
}

// markResidue sets the state of the objects that a failed creation leaves behind.
func (ts *Tasks) markResidue(t *store.Task) {
	FailDocument(ts.Cloud.Store, t)
	if ts.Cloud.Assume.FailedTaskResidue {
		return // they are already UNRESOLVED
	}
	if v := ts.Cloud.Store.VApps[t.Work.VApp]; v != nil && v.Status == store.Unresolved {
		v.Status = store.FailedCreation
	}
	for _, id := range t.Work.VMs {
		if vm := ts.Cloud.Store.VMs[id]; vm != nil && vm.Status == store.Unresolved {
			vm.Status = store.FailedCreation
		}
	}
}

// End sets the result of a task, unlocks its entities and starts queued tasks.
func (ts *Tasks) End(t *store.Task, status store.TaskStatus, err *store.Refusal) {
	t.Status = status
	t.Error = err
	t.Ended = ts.Cloud.Clock.Now()
	t.Work.DropInputs()
	ts.unlock(t)
	t.Waiting = false
	ts.admit(t.OrgID)
}

// trim removes the oldest finished tasks.
func (ts *Tasks) trim() {
	if len(ts.Cloud.Store.Tasks) <= maxTasks {
		return
	}
	var old []*store.Task
	for _, t := range ts.Cloud.Store.Tasks {
		if t.Done() {
			old = append(old, t)
		}
	}
	slices.SortFunc(old, func(a, b *store.Task) int { return a.Started.Compare(b.Started) })
	for _, t := range old[:len(old)/2] {
		delete(ts.Cloud.Store.Tasks, t.ID)
	}
}
