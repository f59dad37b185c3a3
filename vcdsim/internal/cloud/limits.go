// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Load counts the running and the queued tasks of a user and of an organization.
type Load struct {
	User       int
	Org        int
	QueuedUser int
	QueuedOrg  int
}

// Load counts the tasks of a user and of the user's organization.
func (ts *Tasks) Load(orgID, userID string) Load {
	var n Load
	for _, t := range ts.Cloud.Store.Tasks {
		if t.Done() || t.OrgID != orgID || awaitsEvent(t.Work.Op) {
			continue
		}
		own := 0
		if t.UserID == userID {
			own = 1
		}
		if t.Waiting {
			n.QueuedOrg++
			n.QueuedUser += own
		} else {
			n.Org++
			n.User += own
		}
	}
	return n
}

// Reached reports whether a limit is reached; 0 means no limit.
func Reached(limit, have int) bool { return limit > 0 && have >= limit }

// mayRun reports whether the limits permit a task to run. The task is not counted yet.
func (ts *Tasks) mayRun(t *store.Task) bool {
	org := ts.Cloud.Store.Org(t.OrgID)
	if org == nil || org.Limits == (store.OperationLimits{}) {
		return true
	}
	n := ts.Load(t.OrgID, t.UserID)
	return !Reached(org.Limits.PerUser, n.User) && !Reached(org.Limits.PerOrg, n.Org)
}

// admit starts the oldest queued tasks of an organization that the limits allow.
func (ts *Tasks) admit(orgID string) {
	org := ts.Cloud.Store.Org(orgID)
	if org == nil || org.Limits == (store.OperationLimits{}) {
		return
	}
	var waiting []*store.Task
	for _, t := range ts.Cloud.Store.Tasks {
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
			t.Due = ts.Cloud.Clock.Now().Add(took)
			ts.finishAfter(t, took)
		}
	}
}
