// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const codeLimit = "OPERATION_LIMITS_EXCEEDED"

// load counts the tasks of a user and of an organization that run, and that wait.
type load struct{ user, org, queuedUser, queuedOrg int }

func (ts *tasks) load(orgID, userID string) load {
	var n load
	for _, t := range ts.cloud.store.Tasks {
		if t.Done() || t.OrgID != orgID || awaits(t.Work.Op) {
			continue
		}
		own := 0
		if t.UserID == userID {
			own = 1
		}
		if t.Waiting {
			n.queuedOrg++
			n.queuedUser += own
		} else {
			n.org++
			n.user += own
		}
	}
	return n
}

func reached(limit, have int) bool { return limit > 0 && have >= limit }

// withinLimits refuses a write of a user who has as many running and queued operations as the organization allows.
func (r *request) withinLimits() error {
	if r.session == nil || r.Method == http.MethodGet {
		return nil
	}
	org := r.cloud.store.Org(r.session.OrgID)
	if org == nil || org.Limits == (store.OperationLimits{}) {
		return nil
	}
	l := org.Limits
	n := r.cloud.tasks.load(org.ID, r.session.UserID)
	if reached(l.PerUser, n.user) && reached(l.QueuedPerUser, n.queuedUser) {
		return store.Refuse(http.StatusBadRequest, codeLimit,
			"The maximum number of operations that the user %q may have queued, %d, is reached.", r.session.User,
			l.QueuedPerUser)
	}
	if reached(l.PerOrg, n.org) && reached(l.QueuedPerOrg, n.queuedOrg) {
		return store.Refuse(http.StatusBadRequest, codeLimit,
			"The maximum number of operations that the organization %q may have queued, %d, is reached.", org.Name,
			l.QueuedPerOrg)
	}
	return nil
}

// mayRun reports whether a task, which is not counted yet, is within the limits.
func (ts *tasks) mayRun(t *store.Task) bool {
	org := ts.cloud.store.Org(t.OrgID)
	if org == nil || org.Limits == (store.OperationLimits{}) {
		return true
	}
	n := ts.load(t.OrgID, t.UserID)
	return !reached(org.Limits.PerUser, n.user) && !reached(org.Limits.PerOrg, n.org)
}

// admit starts the oldest waiting tasks of an organization, as far as the limits allow.
func (ts *tasks) admit(orgID string) {
	org := ts.cloud.store.Org(orgID)
	if org == nil || org.Limits == (store.OperationLimits{}) {
		return
	}
	var waiting []*store.Task
	for _, t := range ts.cloud.store.Tasks {
		if t.Waiting && !t.Done() && t.OrgID == orgID {
			waiting = append(waiting, t)
		}
	}
	slices.SortFunc(waiting,
		func(a, b *store.Task) int {
			return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Number, b.Number))
		})
	for _, t := range waiting {
		if ts.mayRun(t) {
			t.Waiting = false
			took := t.Due.Sub(t.Started)
			t.Due = ts.cloud.clock.Now().Add(took)
			ts.finishAfter(t, took)
		}
	}
}
