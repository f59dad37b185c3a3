// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// errNoTask means that a response contains no task. The requested operation may have been started nevertheless.
var errNoTask = failure.Unavailable("the response contains no VCD task")

// startXML sends a request to the XML API that starts a task.
func startXML(ctx context.Context, c *api.Client, method, path, contentType string, content any) (Task, error) {
	got, err := c.Do(ctx, api.Call{Method: method, Path: path, ContentType: contentType, Content: content})
	if err != nil {
		return Task{}, err
	}
	var doc types.Task
	if err := wire.DecodeXML(got.Body, &doc); err != nil {
		return Task{}, err
	}
	t := taskFrom(&doc)
	if t.ID == "" {
		return Task{}, errNoTask
	}
	return t, nil
}

// startJSON sends a request to the JSON API that starts a task. A finished task contains its owner, such as the created
// object.
func startJSON(ctx context.Context, c *api.Client, method, path string, content any) (Task, error) {
	got, err := c.Do(ctx, api.Call{Method: method, Path: path, JSON: true, Content: content})
	if err != nil {
		return Task{}, err
	}
	location := got.Header.Get("Location")
	if id := urn.Of(urn.Task, location); id != "" && strings.Contains(location, "/task/") {
		return Task{ID: id, State: TaskRunning, needsOwner: method == http.MethodPost}, nil
	}
	var made struct {
		ID string `json:"id"`
	}
	switch {
	case !slices.Contains(syncStatuses, got.Status):
		return Task{}, errNoTask
	case len(bytes.TrimSpace(got.Body)) == 0:
	case wire.DecodeJSON(got.Body, &made) != nil:
		return Task{}, wire.ErrNotJSON
	}
	return Task{State: TaskSucceeded, Owner: made.ID}, nil
}

// syncStatuses are the statuses of responses to requests that start no task.
var syncStatuses = []int{http.StatusOK, http.StatusCreated, http.StatusNoContent}

// startCreating starts the creation of an object in the JSON API.
func startCreating(ctx context.Context, c *api.Client, what, name, path string, body any) (Task, error) {
	task, err := startJSON(ctx, c, http.MethodPost, path, body)
	return task, failure.Wrap(err, "creating "+what, name)
}

// startDeleting starts the deletion of an object in the JSON API.
func startDeleting(ctx context.Context, c *api.Client, what, id, path string) (Task, error) {
	task, err := startJSON(ctx, c, http.MethodDelete, path, nil)
	return task, failure.Wrap(err, "deleting "+what, id)
}

// startChanging reads an object, calls edit to change it and starts writing it back. If edit changes nothing,
// startChanging writes nothing and returns a succeeded task. It always writes an object that VCD failed to realize, so
// that VCD retries.
func startChanging(ctx context.Context, c *api.Client, what, id, path string, edit func(wire.Object) (bool, error)) (Task, error) {
	task, err := startEditing(ctx, c, path, edit)
	return task, failure.Wrap(err, "changing "+what, id)
}

func startEditing(ctx context.Context, c *api.Client, path string, edit func(wire.Object) (bool, error)) (Task, error) {
	o, err := c.Object(ctx, path)
	if err != nil {
		return Task{}, err
	}
	changed, err := edit(o)
	if err != nil || !changed && Realization(o.Text("status")) != RealizationFailed {
		return Task{State: TaskSucceeded, Owner: o.Text("id")}, err
	}
	task, err := startJSON(ctx, c, http.MethodPut, path, o)
	if task.Owner == "" {
		task.Owner = o.Text("id")
	}
	return task, err
}

func startUndeploying(ctx context.Context, c *api.Client, path, action string) (Task, error) {
	return startXML(ctx, c, http.MethodPost, path+"/action/undeploy", wire.MIMEUndeploy, wire.UndeployParams{Action: action})
}
