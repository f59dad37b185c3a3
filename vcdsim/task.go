// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// maxTasks is how many finished tasks are kept; VCD keeps them for 90 days.
const maxTasks = 20000

// tasks starts operations, keeps entities busy while they run, and ends them.
type tasks struct {
	cloud      *cloud
	operations map[string]operation
	faults     *Faults
	names      func(id string) []string // of an entity: its id and its name
}

// A caller is who starts a task, by which request and on which cell.
type caller struct {
	orgID     string
	userID    string
	user      string
	requestID string
	cell      int
}

// start begins an operation on an entity; by is nil when no request asks for it. The caller checked that nothing in
// locks is busy.
func (ts *tasks) start(by *caller, w store.Work, owner store.Entity, locks []string) *store.Task {
	op := ts.operations[w.Op]
	d := ts.cloud.profile.jittered(op.duration, op.spread, ts.cloud.ids.Rand)
	if n := len(w.VMs); n > 1 && op.spread > 0 {
		d = time.Duration(float64(d) * (1 + ts.cloud.assume.RecomposeExtraItem*float64(n-1)))
	}
	now := ts.cloud.clock.Now()
	t := &store.Task{
		ID:            ts.cloud.ids.Next("task"),
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
		t.OrgID = cmp.Or(ts.cloud.store.OrgOf(owner), by.orgID)
		t.RequestID = by.requestID
		t.Cell = by.cell
		t.UserID = by.userID
		t.UserName = by.user
	}
	if v := ts.cloud.store.VAppOf(owner); v != nil {
		t.OfUser = v.OwnerID
	}
	t.Number = ts.cloud.ids.Count["task"]
	t.Waiting = !awaits(w.Op) && !ts.mayRun(t)
	ts.cloud.store.Tasks[t.ID] = t
	ts.lock(t)
	ts.trim()
	if !t.Waiting {
		ts.finishAfter(t, d)
	}
	return t
}

// finishAfter ends the task after d; if that is 0, as soon as the answer is made.
func (ts *tasks) finishAfter(t *store.Task, d time.Duration) {
	if awaits(t.Work.Op) {
		t.Status = store.TaskRunning
		return
	}
	ts.finishIn(t, d)
}

func (ts *tasks) finishIn(t *store.Task, d time.Duration) {
	if d <= 0 {
		ts.cloud.pending = append(ts.cloud.pending, func() { ts.finish(t.ID) })
		return
	}
	ts.cloud.pending = append(ts.cloud.pending, func() {
		if t.Status == store.TaskQueued {
			t.Status = store.TaskRunning
		}
	})
	ts.cloud.alarms.after(d, store.Alarm{Bell: bellTask, ID: t.ID})
}

// residue sets the state of what a failed creation leaves behind.
func (ts *tasks) residue(t *store.Task) {
	failDocument(ts.cloud.store, t)
	if ts.cloud.assume.FailedTaskResidue {
		return // UNRESOLVED, as it was made
	}
	if v := ts.cloud.store.VApps[t.Work.VApp]; v != nil && v.Status == store.Unresolved {
		v.Status = store.FailedCreation
	}
	for _, id := range t.Work.VMs {
		if vm := ts.cloud.store.VMs[id]; vm != nil && vm.Status == store.Unresolved {
			vm.Status = store.FailedCreation
		}
	}
}

func (ts *tasks) end(t *store.Task, status store.TaskStatus, err *store.Refusal) {
	t.Status = status
	t.Error = err
	t.Ended = ts.cloud.clock.Now()
	t.Work.DropInputs()
	ts.unlock(t)
	t.Waiting = false
	ts.admit(t.OrgID)
}

// trim removes the oldest finished tasks.
func (ts *tasks) trim() {
	if len(ts.cloud.store.Tasks) <= maxTasks {
		return
	}
	var old []*store.Task
	for _, t := range ts.cloud.store.Tasks {
		if t.Done() {
			old = append(old, t)
		}
	}
	slices.SortFunc(old, func(a, b *store.Task) int { return a.Started.Compare(b.Started) })
	for _, t := range old[:len(old)/2] {
		delete(ts.cloud.store.Tasks, t.ID)
	}
}

// tasksNode is the Tasks element of an entity, nil when it is idle.
func tasksNode(r *request, id string) *xmltree.Node {
	t := r.cloud.tasks.of(id)
	if t == nil {
		return nil
	}
	return xmltree.New("Tasks", taskNode(r, t, false))
}

const taskExpiry = 90 * 24 * time.Hour

func taskNode(r *request, t *store.Task, root bool) *xmltree.Node {
	A := xmltree.A
	n := wire.Element("Task", root)
	n.Add([]xmltree.Attr{
		A("cancelRequested", false),
		A("expiryTime", t.Started.Add(taskExpiry)),
		A("operation", t.Operation),
		A("operationName", t.OperationName),
		A("serviceNamespace", "com.vmware.vcloud"),
		A("startTime", t.Started),
	})
	if t.Done() {
		n.Add(A("endTime", t.Ended))
	}
	n.Add([]xmltree.Attr{
		A("status", string(t.Status)),
		A("name", "task"),
		A("id", store.URN("task", t.ID)),
		A("href", r.site.Href("task", t.ID)),
		A("type", wire.Mime("task")),
	})
	if !t.Done() {
		n.Add(r.site.Link("task:cancel", "/api/task/"+t.ID+"/action/cancel", ""))
	}
	n.Add(r.site.Ref("Owner", t.Owner))
	if t.Error != nil {
		n.Add(wire.RefusalNode(t.Error, t.RequestID))
	}
	n.Add(xmltree.New("User", A("href", r.site.Base()+"/api/admin/user/"+t.UserID), A("name", t.UserName),
		A("type", "application/vnd.vmware.admin.user+xml")))
	if org := r.cloud.store.Org(t.OrgID); org != nil {
		n.Add(xmltree.New("Organization", A("href", r.site.Href("org", org.ID)), A("name", org.Name),
			A("type", wire.Mime("org"))))
	}
	if !t.Done() || t.Status == store.TaskSuccess {
		n.Add(xmltree.T("Progress", t.Progress(r.cloud.clock.Now())))
	}
	n.Add(xmltree.T("Details", taskDetails(r.cloud, t)))
	if t.Result != "" {
		n.Add(xmltree.New("Result", xmltree.T("ResultContent", t.Result)))
	}
	return n
}

func taskDetails(c *cloud, t *store.Task) string {
	if t.Error == nil && c.tasks.operations[t.Work.Op].reveals {
		return t.Work.Document
	}
	if t.Error == nil {
		return ""
	}
	return "  " + wire.RefusalText(t.Error, t.RequestID)
}

// start begins an operation on an entity and answers 202. The caller checked that nothing in locks is busy.
func (r *request) start(w store.Work, owner store.Entity, locks []string) *response {
	return r.accepted(r.startTask(w, owner, locks))
}

// startTask begins an operation on an entity. The caller checked that nothing in locks is busy.
func (r *request) startTask(w store.Work, owner store.Entity, locks []string) *store.Task {
	by := &caller{
		orgID:     r.session.OrgID,
		userID:    r.session.UserID,
		user:      r.session.User,
		requestID: r.id,
		cell:      r.cell.number,
	}
	return r.cloud.tasks.start(by, w, owner, locks)
}

// accepted answers 202 with a task; cloudapi only sends its location.
func (r *request) accepted(t *store.Task) *response {
	res := &response{status: http.StatusAccepted, header: map[string]string{"Location": r.site.Href("task", t.ID)}}
	if !r.cloudAPI() {
		res.xml = taskNode(r, t, true)
	}
	return res
}
