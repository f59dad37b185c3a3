// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// TaskStatus is the state of a task, in VCD's words.
type TaskStatus string

// Task states.
const (
	TaskQueued   TaskStatus = "queued"
	TaskRunning  TaskStatus = "running"
	TaskSuccess  TaskStatus = "success"
	TaskError    TaskStatus = "error"
	TaskAborted  TaskStatus = "aborted"
	TaskCanceled TaskStatus = "canceled"
)

// A Task is an asynchronous operation. What it will do is data (Work), so that a running task can be dumped.
type Task struct {
	ID            string
	Operation     string // display text: "Updating Virtual Machine web(uuid)"
	OperationName string // vappUpdateVm …
	Owner         Entity
	OrgID         string
	UserID        string
	OfUser        string // who owns the vApp it works on, or the vApp of the VM
	UserName      string
	Status        TaskStatus
	Started       time.Time
	Due           time.Time // when it ends
	Ended         time.Time
	Error         *Refusal
	Result        string // content of Result, if any
	RequestID     string
	Locks         []string // entities that are busy meanwhile
	Work          Work
	Number        int  // counts the tasks, in the order they were asked for
	Waiting       bool // queued until the organization's limits let it begin
	Cell          int  // that runs it; 0 is none in particular
	Stuck         bool // a fault rule keeps it from ending
}

// An Entity is what a task works on.
type Entity struct {
	Kind string // vapp, vm, disk
	ID   string
	Name string
}

func (t *Task) clone() Task {
	c := *t
	c.Locks = slices.Clone(t.Locks)
	return c
}

func (t *Task) done() bool { return t.Status != TaskQueued && t.Status != TaskRunning }

// progress is the share of the time that passed, 100 when done.
func (t *Task) progress(now time.Time) int {
	if t.done() {
		return 100
	}
	total := t.Due.Sub(t.Started)
	if total <= 0 {
		return 0
	}
	return int(min(99, max(1, 100*now.Sub(t.Started)/total)))
}

// An operation is a kind of work: how VCD names it, how long it takes and what it does when it ends.
type operation struct {
	name     string // operationName
	busy     string // as BUSY_ENTITY names it
	verb     string // begins the display text
	duration time.Duration
	spread   float64
	run      func(s *Simulator, t *Task) error
	undo     func(s *Simulator, t *Task) // when the task is cancelled
}

// newOperation returns an operation without jitter that cannot be undone. VCD derives what BUSY_ENTITY says from the
// name.
func newOperation(name, verb string, duration time.Duration, run func(*Simulator, *Task) error) operation {
	var busy []rune
	for _, c := range name {
		if unicode.IsUpper(c) {
			busy = append(busy, '_')
		}
		busy = append(busy, unicode.ToUpper(c))
	}
	return operation{name: name, busy: string(busy), verb: verb, duration: duration, run: run}
}

// busyAs sets what BUSY_ENTITY says.
func (o operation) busyAs(text string) operation {
	o.busy = text
	return o
}

func (o operation) undoneBy(undo func(*Simulator, *Task)) operation {
	o.undo = undo
	return o
}

// cloning marks an operation that copies disks, which takes more or less time.
func (o operation) cloning(undo func(*Simulator, *Task)) operation {
	o.spread = cloneSpread
	return o.undoneBy(undo)
}

// nothing is the work of operations that another event completes.
func nothing(*Simulator, *Task) error { return nil }

// maxTasks is how many finished tasks are kept; VCD keeps them for 90 days.
const maxTasks = 20000

// tasks starts operations, keeps entities busy while they run, and ends them.
type tasks struct {
	sim        *Simulator
	operations map[string]operation
}

// start begins an operation on an entity. The caller checked that nothing in locks is busy.
func (ts *tasks) start(r *request, w Work, owner Entity, locks []string) *Task {
	op := ts.operations[w.Op]
	d := ts.sim.profile.jittered(op.duration, op.spread, ts.sim.ids.rng)
	if n := len(w.VMs); n > 1 && op.spread > 0 {
		d = time.Duration(float64(d) * (1 + ts.sim.assume.RecomposeExtraItem*float64(n-1)))
	}
	now := ts.sim.clock.Now()
	t := &Task{
		ID:            ts.sim.ids.next("task"),
		OperationName: op.name,
		Owner:         owner,
		Operation:     fmt.Sprintf("%s %s(%s)", op.verb, owner.Name, owner.ID),
		Status:        TaskQueued,
		Started:       now,
		Due:           now.Add(d),
		Locks:         locks,
		Work:          w,
		UserName:      "system",
	}
	if r != nil {
		t.OrgID = cmp.Or(ts.sim.store.orgOf(owner), r.session.OrgID)
		t.RequestID = r.id
		t.Cell = r.cell.number
		t.UserID = r.session.UserID
		t.UserName = r.session.User
	}
	if v := ts.sim.store.vappOf(owner); v != nil {
		t.OfUser = v.OwnerID
	}
	t.Number = ts.sim.ids.count["task"]
	t.Waiting = !awaits(w.Op) && !ts.mayRun(t)
	ts.sim.store.Tasks[t.ID] = t
	ts.lock(t)
	ts.trim()
	if !t.Waiting {
		ts.finishAfter(t, d)
	}
	return t
}

// orgOf is the organization of a vApp, VM or disk, empty for anything else: it also sees what providers do to them.
func (s *store) orgOf(e Entity) string {
	if v := s.vappOf(e); v != nil {
		return v.OrgID
	}
	if d := s.Disks[e.ID]; e.Kind == "disk" && d != nil {
		return d.OrgID
	}
	return ""
}

// vappOf is a vApp, or the one that a VM is in; nil for anything else.
func (s *store) vappOf(e Entity) *VApp {
	switch e.Kind {
	case "vapp":
		return s.VApps[e.ID]
	case "vm":
		return s.home(e.ID)
	}
	return nil
}

// finishAfter ends the task after d; if that is 0, as soon as the answer is made.
func (ts *tasks) finishAfter(t *Task, d time.Duration) {
	if awaits(t.Work.Op) {
		t.Status = TaskRunning
		return
	}
	ts.finishIn(t, d)
}

func (ts *tasks) finishIn(t *Task, d time.Duration) {
	if d <= 0 {
		ts.sim.pending = append(ts.sim.pending, func() { ts.finish(t.ID) })
		return
	}
	ts.sim.pending = append(ts.sim.pending, func() {
		if t.Status == TaskQueued {
			t.Status = TaskRunning
		}
	})
	ts.sim.alarms.after(d, alarm{Bell: bellTask, ID: t.ID})
}

// residue sets the state of what a failed creation leaves behind.
func (ts *tasks) residue(t *Task) {
	failDocument(ts.sim, t)
	if ts.sim.assume.FailedTaskResidue {
		return // UNRESOLVED, as it was made
	}
	if v := ts.sim.store.VApps[t.Work.VApp]; v != nil && v.Status == Unresolved {
		v.Status = FailedCreation
	}
	for _, id := range t.Work.VMs {
		if vm := ts.sim.store.VMs[id]; vm != nil && vm.Status == Unresolved {
			vm.Status = FailedCreation
		}
	}
}

func (ts *tasks) end(t *Task, status TaskStatus, err *Refusal) {
	t.Status = status
	t.Error = err
	t.Ended = ts.sim.clock.Now()
	t.Work.forget()
	ts.unlock(t)
	t.Waiting = false
	ts.admit(t.OrgID)
}

// trim removes the oldest finished tasks.
func (ts *tasks) trim() {
	if len(ts.sim.store.Tasks) <= maxTasks {
		return
	}
	var old []*Task
	for _, t := range ts.sim.store.Tasks {
		if t.done() {
			old = append(old, t)
		}
	}
	slices.SortFunc(old, func(a, b *Task) int { return a.Started.Compare(b.Started) })
	for _, t := range old[:len(old)/2] {
		delete(ts.sim.store.Tasks, t.ID)
	}
}

// tasksNode is the Tasks element of an entity, nil when it is idle.
func tasksNode(r *request, id string) *xmltree.Node {
	t := r.sim.tasks.of(id)
	if t == nil {
		return nil
	}
	return xmltree.New("Tasks", taskNode(r, t, false))
}

const taskExpiry = 90 * 24 * time.Hour

func taskNode(r *request, t *Task, root bool) *xmltree.Node {
	A := xmltree.A
	n := newElement("Task", root)
	n.Add([]xmltree.Attr{
		A("cancelRequested", false),
		A("expiryTime", t.Started.Add(taskExpiry)),
		A("operation", t.Operation),
		A("operationName", t.OperationName),
		A("serviceNamespace", "com.vmware.vcloud"),
		A("startTime", t.Started),
	})
	if t.done() {
		n.Add(A("endTime", t.Ended))
	}
	n.Add([]xmltree.Attr{
		A("status", string(t.Status)),
		A("name", "task"),
		A("id", URN("task", t.ID)),
		A("href", r.href("task", t.ID)),
		A("type", mime("task")),
	})
	if !t.done() {
		n.Add(r.link("task:cancel", "/api/task/"+t.ID+"/action/cancel", ""))
	}
	n.Add(r.ref("Owner", t.Owner))
	if t.Error != nil {
		n.Add(t.Error.node(t.RequestID))
	}
	n.Add(xmltree.New("User", A("href", r.base()+"/api/admin/user/"+t.UserID), A("name", t.UserName),
		A("type", "application/vnd.vmware.admin.user+xml")))
	if org := r.sim.store.org(t.OrgID); org != nil {
		n.Add(xmltree.New("Organization", A("href", r.href("org", org.ID)), A("name", org.Name),
			A("type", mime("org"))))
	}
	if !t.done() || t.Status == TaskSuccess {
		n.Add(xmltree.T("Progress", t.progress(r.sim.clock.Now())))
	}
	n.Add(xmltree.T("Details", t.details()))
	if t.Result != "" {
		n.Add(xmltree.New("Result", xmltree.T("ResultContent", t.Result)))
	}
	return n
}

func (t *Task) details() string {
	if t.Error == nil && t.Work.Op == "create "+bindingPath {
		return t.Work.Document // clients have no other way to learn the id
	}
	if t.Error == nil {
		return ""
	}
	return "  " + t.Error.text(t.RequestID)
}

// start begins an operation on an entity and answers 202. The caller checked that nothing in locks is busy.
func (r *request) start(w Work, owner Entity, locks []string) *response {
	return r.accepted(r.sim.tasks.start(r, w, owner, locks))
}

// accepted answers 202 with a task; cloudapi only sends its location.
func (r *request) accepted(t *Task) *response {
	res := &response{status: http.StatusAccepted, header: map[string]string{"Location": r.href("task", t.ID)}}
	if !r.cloudAPI() {
		res.xml = taskNode(r, t, true)
	}
	return res
}
