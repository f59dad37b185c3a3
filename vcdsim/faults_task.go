package vcdsim

import (
	"errors"
	"net/http"
	"slices"
)

// taskFault returns the rule for a task that is about to end, nil if none applies.
func (s *Simulator) taskFault(t *Task) *Fault {
	if t.Stuck || s.faults.empty() {
		return nil
	}
	of := subject{task: true, operation: t.OperationName, cell: t.Cell, user: t.UserName, entities: []string{t.Owner.ID, t.Owner.Name, t.Work.VApp, t.Work.VM, t.Work.Disk}}
	for _, id := range append(slices.Clone(t.Locks), bare(t.Work.Document)) {
		of.entities = append(of.entities, s.called(id)...)
	}
	if org := s.store.org(t.OrgID); org != nil {
		of.org = org.Name
	}
	return s.faults.take(func(f *Fault) bool { return f.matches(of) })
}

// finish ends a task: it does the work, or what a fault rule says, and frees the entities.
func (s *Simulator) finish(id string) {
	t := s.store.tasks[id]
	if t == nil || t.done() {
		return
	}
	f := s.taskFault(t)
	switch {
	case f == nil:
		s.complete(t)
	case f.StickTask:
		t.Stuck, t.Status = true, TaskRunning
		if f.Delay > 0 {
			s.after(f.Delay, alarm{Bell: bellTask, ID: t.ID})
		}
	case f.AbortTask:
		s.abort(t, f.Message)
	default:
		s.residue(t)
		s.end(t, TaskError, f.taskError())
	}
}

// complete does the work of a task.
func (s *Simulator) complete(t *Task) {
	err := s.operations[t.Work.Op].run(s, t)
	if err == nil {
		s.end(t, TaskSuccess, nil)
		return
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		refusal = refuse(http.StatusInternalServerError, codeInternal, "%s", err)
	}
	s.residue(t)
	s.end(t, TaskError, refusal)
}

// abort ends a task as VCD does when the cell that ran it went away.
func (s *Simulator) abort(t *Task, message string) {
	if message == "" {
		message = "The task was aborted."
	}
	s.residue(t)
	s.end(t, TaskAborted, refuse(http.StatusInternalServerError, "TASK_ABORTED", "%s", message))
}

func (f *Fault) taskError() *Refusal {
	status, code := f.Status, f.Code
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if code == "" {
		code = codeInternal
	}
	return refuse(status, code, "%s", f.Message)
}
