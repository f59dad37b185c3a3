package vcdsim

import (
	"net/http"
	"slices"
)

// lock makes a task's entities busy. What several tasks may change at a time stays the first one's.
func (s *Simulator) lock(t *Task) {
	for _, id := range t.Locks {
		if _, held := s.store.locks[id]; !held || !s.shares(id) {
			s.store.locks[id] = t.ID
		}
	}
}

// unlock frees a task's entities, or leaves them to the next that changes them, too.
func (s *Simulator) unlock(t *Task) {
	for _, id := range t.Locks {
		if s.store.locks[id] != t.ID {
			continue
		}
		delete(s.store.locks, id)
		if next := s.sharer(id); next != nil {
			s.store.locks[id] = next.ID
		}
	}
}

// shares says whether several tasks may change an entity at a time: an edge gateway, if writes do not exclude each other.
func (s *Simulator) shares(id string) bool {
	if s.assume.GatewayWritesExclude {
		return false
	}
	_, _, g := s.store.gateway(id)
	return g != nil
}

// sharer is the oldest unfinished task that changes a shared entity.
func (s *Simulator) sharer(id string) *Task {
	if !s.shares(id) {
		return nil
	}
	var first *Task
	for _, t := range s.store.tasks {
		if !t.done() && slices.Contains(t.Locks, id) && (first == nil || t.Number < first.Number) {
			first = t
		}
	}
	return first
}

// busyCheck refuses with BUSY_ENTITY when a task holds one of the entities.
func (s *Simulator) busyCheck(ids ...string) error {
	for _, id := range ids {
		taskID, held := s.store.locks[id]
		if !held || s.shares(id) {
			continue
		}
		t := s.store.tasks[taskID]
		return refuse(http.StatusBadRequest, codeBusy, "%s", busyText(s.assume.BusyTextTenant, t.Owner, s.operations[t.Work.Op].busy, t.ID))
	}
	return nil
}

// busy says whether a task holds an entity.
func (s *Simulator) busy(id string) bool { return s.store.locks[id] != "" }

// taskOf is the unfinished task on an entity, nil if there is none.
func (s *Simulator) taskOf(id string) *Task {
	if t := s.store.tasks[s.store.locks[id]]; t != nil && t.Owner.ID == id {
		return t
	}
	return nil
}
