// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

func auditRoutes(add api.AddRoute) {
	add("GET", "/cloudapi/1.0.0/auditTrail", listEvents, cloud.LatencyCloudAPI)
}

// An event is an entry of the audit trail.
type event struct {
	at      time.Time
	kind    string // object and action, such as session/login
	subject string // ID of the session or task
	orgID   string
	userID  string
	user    string
	entity  store.Entity
	task    string
	cell    int
	failed  bool
}

// auditTime is the time format of the audit trail. Times in this format sort as strings.
const auditTime = "2006-01-02T15:04:05.000Z"

// listEvents returns the logins of existing sessions and the starts and ends of tasks, newest last. Events are not
// stored: once the site forgets an object, such as a closed session, its events disappear from the audit trail.
func listEvents(r *api.Request) (*api.Response, error) {
	var out []any
	for _, e := range events(r.Cloud) {
		if r.Session.Sees(e.orgID) {
			out = append(out, eventJSON(r.Cloud, e))
		}
	}
	return r.Page(out)
}

func events(s *cloud.Cloud) []event {
	var out []event
	for _, session := range s.Store.Sessions {
		out = append(out, event{
			at:      session.Expires.Add(-s.Lifetime),
			kind:    "session/login",
			subject: session.ID,
			orgID:   session.OrgID,
			userID:  session.UserID,
			user:    session.User,
			entity:  store.Entity{Kind: "user", ID: session.UserID, Name: session.User},
			cell:    session.Cell,
		})
	}
	for _, t := range s.Store.Tasks {
		e := event{
			at:      t.Started,
			kind:    "task/create",
			subject: t.ID,
			orgID:   t.OrgID,
			userID:  t.UserID,
			user:    t.UserName,
			entity:  t.Owner,
			task:    t.ID,
			cell:    t.Cell,
		}
		out = append(out, e)
		if t.Done() {
			e.at = t.Ended
			e.kind = "task/complete"
			e.failed = t.Status != store.TaskSuccess
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b event) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.subject, b.subject), cmp.Compare(b.kind, a.kind))
	})
	return out
}

func eventJSON(s *cloud.Cloud, e event) map[string]any {
	org := ""
	if o := s.Store.Org(e.orgID); o != nil {
		org = o.Name
	}
	status := "SUCCESS"
	if e.failed {
		status = "FAILURE"
	}
	var task, cell any
	if e.task != "" {
		task = store.URN("task", e.task)
	}
	if e.cell > 0 {
		cell = s.IDs.Named("cell", strconv.Itoa(e.cell))
	}
	return map[string]any{
		"eventId":              store.URN("audit", s.IDs.Named("audit", e.kind+e.subject)),
		"description":          "",
		"operatingOrg":         api.Ref("org", e.orgID, org),
		"user":                 api.Ref("user", e.userID, e.user),
		"eventEntity":          api.Ref(e.entity.Kind, e.entity.ID, e.entity.Name),
		"taskId":               task,
		"taskCellId":           cell,
		"cellId":               cell,
		"eventType":            "com/vmware/vcloud/event/" + e.kind,
		"serviceNamespace":     "com.vmware.vcloud",
		"eventStatus":          status,
		"timestamp":            e.at.UTC().Format(auditTime),
		"external":             false,
		"additionalProperties": map[string]any{},
	}
}
