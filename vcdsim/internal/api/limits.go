// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const codeLimit = "OPERATION_LIMITS_EXCEEDED"

// WithinLimits returns an error for a write if the number of the user's running and queued operations has reached the
// limits of the organization.
func (r *Request) WithinLimits() error {
	if r.Session == nil || r.Method == http.MethodGet {
		return nil
	}
	org := r.Cloud.Store.Org(r.Session.OrgID)
	if org == nil || org.Limits == (store.OperationLimits{}) {
		return nil
	}
	l := org.Limits
	n := r.Cloud.Tasks.Load(org.ID, r.Session.UserID)
	if cloud.Reached(l.PerUser, n.User) && cloud.Reached(l.QueuedPerUser, n.QueuedUser) {
		return store.Refuse(http.StatusBadRequest, codeLimit,
			"The maximum number of operations that the user %q may have queued, %d, is reached.", r.Session.User,
			l.QueuedPerUser)
	}
	if cloud.Reached(l.PerOrg, n.Org) && cloud.Reached(l.QueuedPerOrg, n.QueuedOrg) {
		return store.Refuse(http.StatusBadRequest, codeLimit,
			"The maximum number of operations that the organization %q may have queued, %d, is reached.", org.Name,
			l.QueuedPerOrg)
	}
	return nil
}
