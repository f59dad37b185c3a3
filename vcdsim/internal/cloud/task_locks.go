// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// BusyText returns the BUSY_ENTITY message for an entity that a task holds.
func BusyText(tenant bool, e store.Entity, operation, task string) string {
	held := fmt.Sprintf("%s(com.vmware.vcloud.entity.task:%s)", operation, task)
	if tenant {
		return "Unable to perform this action. Contact your cloud administrator. " + held
	}
	return fmt.Sprintf("The entity Ref: com.vmware.vcloud.entity.%s:%s is busy completing an operation %s. %s", e.Kind,
		e.ID, operation, held)
}

// lock locks the entities of a task. A shared entity stays locked by the first task.
func (ts *Tasks) lock(t *store.Task) {
	for _, id := range t.Locks {
		if _, held := ts.Cloud.Store.Locks[id]; !held || !ts.shares(id) {
			ts.Cloud.Store.Locks[id] = t.ID
		}
	}
}

// unlock unlocks the entities of a task. It passes shared entities to the next task that changes them.
func (ts *Tasks) unlock(t *store.Task) {
	for _, id := range t.Locks {
		if ts.Cloud.Store.Locks[id] != t.ID {
			continue
		}
		delete(ts.Cloud.Store.Locks, id)
		if next := ts.sharer(id); next != nil {
			ts.Cloud.Store.Locks[id] = next.ID
		}
	}
}

// shares reports whether several tasks may change an entity concurrently. Only edge gateways are shared, unless writes
// to them exclude each other.
func (ts *Tasks) shares(id string) bool {
	if ts.Cloud.Assume.GatewayWritesExclude {
		return false
	}
	_, _, g := ts.Cloud.Store.Gateway(id)
	return g != nil
}

// sharer returns the oldest unfinished task that changes a shared entity, or nil if there is none.
func (ts *Tasks) sharer(id string) *store.Task {
	if !ts.shares(id) {
		return nil
	}
	var first *store.Task
	for _, t := range ts.Cloud.Store.Tasks {
		if !t.Done() && slices.Contains(t.Locks, id) && (first == nil || t.Number < first.Number) {
			first = t
		}
	}
	return first
}

// CheckIdle returns a BUSY_ENTITY error if a task holds one of the entities.
func (ts *Tasks) CheckIdle(ids ...string) error {
	for _, id := range ids {
		taskID, held := ts.Cloud.Store.Locks[id]
		if !held || ts.shares(id) {
			continue
		}
		t := ts.Cloud.Store.Tasks[taskID]
		return store.Refuse(http.StatusBadRequest, store.CodeBusy, "%s",
			BusyText(ts.Cloud.Assume.BusyTextTenant, t.Owner, ts.Operations[t.Work.Op].Busy, t.ID))
	}
	return nil
}

// Busy reports whether a task holds an entity.
func (ts *Tasks) Busy(id string) bool { return ts.Cloud.Store.Locks[id] != "" }

// Of returns the unfinished task of an entity, or nil if there is none.
func (ts *Tasks) Of(id string) *store.Task {
	if t := ts.Cloud.Store.Tasks[ts.Cloud.Store.Locks[id]]; t != nil && t.Owner.ID == id {
		return t
	}
	return nil
}
