// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// lock makes a task's entities busy. A shared entity stays locked by the first task.
func (ts *tasks) lock(t *store.Task) {
	for _, id := range t.Locks {
		if _, held := ts.cloud.store.Locks[id]; !held || !ts.shares(id) {
			ts.cloud.store.Locks[id] = t.ID
		}
	}
}

// unlock frees a task's entities, or passes shared ones to the next task that changes them.
func (ts *tasks) unlock(t *store.Task) {
	for _, id := range t.Locks {
		if ts.cloud.store.Locks[id] != t.ID {
			continue
		}
		delete(ts.cloud.store.Locks, id)
		if next := ts.sharer(id); next != nil {
			ts.cloud.store.Locks[id] = next.ID
		}
	}
}

// shares reports whether several tasks may change an entity at a time: an edge gateway, if writes do not exclude each
// other.
func (ts *tasks) shares(id string) bool {
	if ts.cloud.assume.GatewayWritesExclude {
		return false
	}
	_, _, g := ts.cloud.store.Gateway(id)
	return g != nil
}

// sharer is the oldest unfinished task that changes a shared entity.
func (ts *tasks) sharer(id string) *store.Task {
	if !ts.shares(id) {
		return nil
	}
	var first *store.Task
	for _, t := range ts.cloud.store.Tasks {
		if !t.Done() && slices.Contains(t.Locks, id) && (first == nil || t.Number < first.Number) {
			first = t
		}
	}
	return first
}

// checkIdle refuses with BUSY_ENTITY when a task holds one of the entities.
func (ts *tasks) checkIdle(ids ...string) error {
	for _, id := range ids {
		taskID, held := ts.cloud.store.Locks[id]
		if !held || ts.shares(id) {
			continue
		}
		t := ts.cloud.store.Tasks[taskID]
		return store.Refuse(http.StatusBadRequest, store.CodeBusy, "%s",
			busyText(ts.cloud.assume.BusyTextTenant, t.Owner, ts.operations[t.Work.Op].busy, t.ID))
	}
	return nil
}

// busy reports whether a task holds an entity.
func (ts *tasks) busy(id string) bool { return ts.cloud.store.Locks[id] != "" }

// of is the unfinished task on an entity, nil if there is none.
func (ts *tasks) of(id string) *store.Task {
	if t := ts.cloud.store.Tasks[ts.cloud.store.Locks[id]]; t != nil && t.Owner.ID == id {
		return t
	}
	return nil
}
