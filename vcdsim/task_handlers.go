// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func taskRoutes(add addRoute) {
	add("GET", "/api/task/{id}", with(ownTask, getTask), latencyTask)
	add("GET", "/api/tasksList/{org}", listTasks, latencyTask)
	add("POST", "/api/task/{id}/action/cancel", with(ownTask, cancelTask), latencyTask)
}

func ownTask(r *request) (*store.Task, error) {
	t := r.cloud.store.Tasks[store.Bare(r.vars["id"])]
	if t == nil || !viewerOf(r).seesTask(t) {
		return nil, store.Forbidden("TASK_VIEW", r.vars["id"])
	}
	return t, nil
}

func getTask(r *request, t *store.Task) (*response, error) {
	return xmlOK(taskNode(r, t, true)), nil
}

func cancelTask(r *request, t *store.Task) (*response, error) {
	if t.Done() {
		return nil, store.BadRequest("The task %s cannot be cancelled: it is completed.", t.ID)
	}
	op := r.cloud.tasks.operations[t.Work.Op]
	if op.undo != nil && r.cloud.assume.CancelUndoesCompose {
		op.undo(r.cloud, t)
	}
	failDocument(r.cloud.store, t)
	r.cloud.tasks.end(t, store.TaskCanceled, nil)
	return noContent(), nil
}

// recentTasks is how many finished tasks VCD shows beside those that run.
const recentTasks = 50

// listTasks shows the tasks of an organization that wait, run or ended recently, the youngest first.
func listTasks(r *request) (*response, error) {
	org := r.cloud.store.Org(store.Bare(r.vars["org"]))
	if org == nil || !r.session.Sees(org.ID) {
		return nil, store.Forbidden("TASK_VIEW", r.vars["org"])
	}
	n := xmltree.New("TasksList", wire.Namespaces(), xmltree.A("name", "Tasks Lists"),
		xmltree.A("href", r.site.Href("tasksList", org.ID)),
		xmltree.A("type", wire.Mime("tasksList")))
	tasks := slices.SortedFunc(maps.Values(r.cloud.store.Tasks),
		func(a, b *store.Task) int { return cmp.Compare(b.Number, a.Number) })
	viewer := viewerOf(r)
	ended := 0
	for _, t := range tasks {
		if t.OrgID != org.ID || !viewer.seesTask(t) {
			continue
		}
		if t.Done() {
			ended++
		}
		if !t.Done() || ended <= recentTasks {
			n.Add(taskNode(r, t, false))
		}
	}
	return xmlOK(n), nil
}
