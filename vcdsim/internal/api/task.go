// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Start starts an operation on an entity and responds with 202. The caller must have checked that no entity in locks is
// busy.
func (r *Request) Start(w store.Work, owner store.Entity, locks []string) *Response {
	return r.Accepted(r.StartTask(w, owner, locks))
}

// StartTask starts an operation on an entity. The caller must have checked that no entity in locks is busy.
func (r *Request) StartTask(w store.Work, owner store.Entity, locks []string) *store.Task {
	by := &cloud.Caller{
		OrgID:     r.Session.OrgID,
		UserID:    r.Session.UserID,
		User:      r.Session.User,
		RequestID: r.ID,
		Cell:      r.Cell.Number,
	}
	return r.Cloud.Tasks.Start(by, w, owner, locks)
}

// Accepted responds with 202 and a task. cloudapi returns only the location of the task.
func (r *Request) Accepted(t *store.Task) *Response {
	res := &Response{Status: http.StatusAccepted, Header: map[string]string{"Location": r.Site.Href("task", t.ID)}}
	if !r.CloudAPI() {
		res.XML = TaskNode(r, t, true)
	}
	return res
}

// Done responds with 202 and a task for an operation that is already complete.
func (r *Request) Done(e store.Entity) *Response {
	return r.Start(store.Work{Op: cloud.OpDone}, e, nil)
}

// AcceptedJSON responds with 202 without a body, as cloudapi does, for an operation that is already complete.
func (r *Request) AcceptedJSON(e store.Entity) *Response {
	task := r.StartTask(store.Work{Op: cloud.OpDone}, e, nil)
	return &Response{Status: http.StatusAccepted, Header: map[string]string{"Location": r.Site.Href("task", task.ID)}}
}

// TasksNode returns the Tasks element of an entity, or nil if the entity is idle.
func TasksNode(r *Request, id string) *xmltree.Node {
	t := r.Cloud.Tasks.Of(id)
	if t == nil {
		return nil
	}
	return xmltree.New("Tasks", TaskNode(r, t, false))
}

const taskExpiry = 90 * 24 * time.Hour

// TaskNode returns the Task element of a task. root means that it is the root of a document.
func TaskNode(r *Request, t *store.Task, root bool) *xmltree.Node {
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
		A("href", r.Site.Href("task", t.ID)),
		A("type", wire.Mime("task")),
	})
	if !t.Done() {
		n.Add(r.Site.Link("task:cancel", "/api/task/"+t.ID+"/action/cancel", ""))
	}
	n.Add(r.Site.Ref("Owner", t.Owner))
	if t.Error != nil {
		n.Add(wire.RefusalNode(t.Error, t.RequestID))
	}
	n.Add(xmltree.New("User", A("href", r.Site.Base()+"/api/admin/user/"+t.UserID), A("name", t.UserName),
		A("type", "application/vnd.vmware.admin.user+xml")))
	if org := r.Cloud.Store.Org(t.OrgID); org != nil {
		n.Add(xmltree.New("Organization", A("href", r.Site.Href("org", org.ID)), A("name", org.Name),
			A("type", wire.Mime("org"))))
	}
	if !t.Done() || t.Status == store.TaskSuccess {
		n.Add(xmltree.T("Progress", t.Progress(r.Cloud.Clock.Now())))
	}
	n.Add(xmltree.T("Details", TaskDetails(r.Cloud, t)))
	if t.Result != "" {
		n.Add(xmltree.New("Result", xmltree.T("ResultContent", t.Result)))
	}
	return n
}

// TaskDetails returns the details of a task: its error or the ID of the object that it created.
func TaskDetails(c *cloud.Cloud, t *store.Task) string {
	if t.Error == nil && c.Tasks.Operations[t.Work.Op].Reveals {
		return t.Work.Document
	}
	if t.Error == nil {
		return ""
	}
	return "  " + wire.RefusalText(t.Error, t.RequestID)
}
