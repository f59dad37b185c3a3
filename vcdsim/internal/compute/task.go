// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func taskRoutes(add api.AddRoute) {
	add("GET", "/api/task/{id}", api.With(ownTask, getTask), cloud.LatencyTask)
	add("GET", "/api/tasksList/{org}", listTasks, cloud.LatencyTask)
	add("POST", "/api/task/{id}/action/cancel", api.WithCloud(ownTask, cancelTask), cloud.LatencyTask)
}

func ownTask(r *api.Request) (*store.Task, error) {
	t := r.Cloud.Store.Tasks[store.Bare(r.Vars["id"])]
	if t == nil || !access.ViewerOf(r).SeesTask(t) {
		return nil, store.Forbidden("TASK_VIEW", r.Vars["id"])
	}
	return t, nil
}

func getTask(r *api.Request, t *store.Task) (*api.Response, error) {
	return api.XML(api.TaskNode(r, t, true)), nil
}

func cancelTask(s *cloud.Cloud, t *store.Task) (*api.Response, error) {
	if t.Done() {
		return nil, store.BadRequest("The task %s cannot be cancelled: it is completed.", t.ID)
	}
	op := s.Tasks.Operations[t.Work.Op]
	if op.Undo != nil && s.Assume.CancelUndoesCompose {
		op.Undo(s, t)
	}
	cloud.FailDocument(s.Store, t)
	s.Tasks.End(t, store.TaskCanceled, nil)
	return api.NoContent(), nil
}

// recentTasks is the maximum number of finished tasks that VCD lists in addition to the unfinished ones.
const recentTasks = 50

// listTasks returns the tasks of an organization that are queued, running or recently finished, newest first.
func listTasks(r *api.Request) (*api.Response, error) {
	org := r.Cloud.Store.Org(store.Bare(r.Vars["org"]))
	if org == nil || !r.Session.Sees(org.ID) {
		return nil, store.Forbidden("TASK_VIEW", r.Vars["org"])
	}
	n := xmltree.New("TasksList", wire.Namespaces(), xmltree.A("name", "Tasks Lists"),
		xmltree.A("href", r.Site.Href("tasksList", org.ID)),
		xmltree.A("type", wire.Mime("tasksList")))
	tasks := slices.SortedFunc(maps.Values(r.Cloud.Store.Tasks),
		func(a, b *store.Task) int { return cmp.Compare(b.Number, a.Number) })
	viewer := access.ViewerOf(r)
	ended := 0
	for _, t := range tasks {
		if t.OrgID != org.ID || !viewer.SeesTask(t) {
			continue
		}
		if t.Done() {
			ended++
		}
		if !t.Done() || ended <= recentTasks {
			n.Add(api.TaskNode(r, t, false))
		}
	}
	return api.XML(n), nil
}
