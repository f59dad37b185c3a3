// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// TaskState is the state of a task.
type TaskState string

// Task states. Every state but Running is final.
const (
	TaskRunning   TaskState = "running" // includes queued and preRunning
	TaskSucceeded TaskState = "success"
	TaskFailed    TaskState = "error" // includes aborted and canceled
	TaskUnknown   TaskState = "unknown"
)

// A Task is an asynchronous operation of VCD.
type Task struct {
	ID        string // URN
	Operation string // vappUpdateVm …
	Owner     string // URN of its entity
	State     TaskState
	Progress  int
	Err       error  // reason of the failure; wraps a sentinel
	Result    string // result of a task of the JSON API: a JSON document, mostly empty
	Started   time.Time
	Ended     time.Time
	Noticed   time.Time // when [Tasks] noticed its end, by the clock of the session; zero: it is running

	// needsOwner is true if Owner must be read when the task has finished, because the JSON API only returns the URL of
	// the task.
	needsOwner bool
}

// readTask reads the owner and result of a succeeded task. It returns known if VCD has deleted the task in the
// meantime.
func (ts *Tasks) readTask(ctx context.Context, id string, known Task) (Task, error) {
	states, err := ts.readTasks(ctx, []string{id})
	if read, ok := states[id]; ok {
		return read, err
	}
	return known, err
}

// queryTasks reads the states of tasks with one query, which does not return the reasons of failures.
func (ts *Tasks) queryTasks(ctx context.Context, ids []string) (map[string]Task, error) {
	terms := make([]fiql.Term, len(ids))
	for i, id := range ids {
		terms[i] = fiql.Is("id", id)
	}
	var found types.QueryResultRecordsType
	if err := ts.client.QueryPage(ctx, "task", fiql.AnyOf(terms...), 1, "", &found); err != nil {
		return nil, err
	}
	states := map[string]Task{}
	for _, record := range api.Both(found.TaskRecord, found.AdminTaskRecord) {
		id := urn.Of(urn.Task, record.HREF)
		states[id] = Task{
			ID:        id,
			Operation: record.Name,
			State:     taskState(record.Status),
			Progress:  record.Progress,
			Started:   wire.Time(record.StartDate),
			Ended:     wire.Time(record.EndDate),
		}
	}
	return states, nil
}

// readTasks reads tasks one by one. It omits tasks that do not exist or are not visible to the user.
func (ts *Tasks) readTasks(ctx context.Context, ids []string) (map[string]Task, error) {
	states := map[string]Task{}
	for _, id := range ids {
		var doc types.Task
		err := ts.client.GetXML(ctx, urn.Path(urn.Task, id), &doc)
		switch {
		case err == nil:
			states[id] = taskFrom(&doc)
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrForbidden):
			return nil, err
		}
	}
	return states, nil
}

// readFailure reads the error of a failed task, which the query does not return. The second error means that it cannot
// be read now. Without it, an exhausted quota would be treated like any failure.
func (ts *Tasks) readFailure(ctx context.Context, id string) (why, err error) {
	var t types.Task
	err = ts.client.GetXML(ctx, urn.Path(urn.Task, id), &t)
	if err == nil {
		return failureOf(&t), nil
	}
	if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrThrottled) && !errors.Is(err, ErrUnauthorized) {
		err = nil
	}
	return &failure.StatusError{Message: "the task failed, and VCD reports no reason"}, err
}

// failureOf returns the error of a failed, aborted or canceled task.
func failureOf(t *types.Task) error {
	if t.Error == nil {
		return &failure.StatusError{Operation: t.OperationName, Message: "the task ended as " + t.Status}
	}
	e := &failure.StatusError{Operation: t.OperationName, Code: t.Error.MinorErrorCode, Message: failure.TidyMessage(t.Error.Message)}
	if t.Error.MajorErrorCode >= http.StatusBadRequest && t.Error.MajorErrorCode < 600 {
		e.Status = t.Error.MajorErrorCode
	}
	if errors.Is(e, ErrNotFound) || errors.Is(e, ErrForbidden) {
		// Something that the task needs is missing. That is no evidence about the object of the task.
		return &taskError{e}
	}
	return e
}

// A taskError is the failure of a task that must not be mistaken for the absence of its object.
type taskError struct{ cause *failure.StatusError }

// Error implements error.
func (e *taskError) Error() string { return e.cause.Error() }

// Unwrap lets [errors.Is] match the sentinels.
func (e *taskError) Unwrap() error { return ErrInvalid }

// taskFrom converts a task of the XML API.
func taskFrom(t *types.Task) Task {
	task := Task{
		ID:        urn.Of(urn.Task, t.ID),
		Operation: t.OperationName,
		State:     taskState(t.Status),
		Progress:  t.Progress,
		Started:   wire.Time(t.StartTime),
		Ended:     wire.Time(t.EndTime),
	}
	if task.ID == "" {
		task.ID = urn.Of(urn.Task, t.HREF)
	}
	if t.Owner != nil {
		task.Owner = urn.Of("", cmp.Or(t.Owner.ID, t.Owner.HREF))
	}
	if t.Result != nil {
		task.Result = t.Result.ResultContent.Text
	}
	if task.State == TaskFailed {
		task.Err = failureOf(t)
	}
	return task
}

// unfinished returns the tasks that still lock an entity.
func unfinished(tasks *types.TasksInProgress) []Task {
	if tasks == nil {
		return nil
	}
	var running []Task
	for _, t := range tasks.Task {
		if task := taskFrom(t); task.State == TaskRunning {
			running = append(running, task)
		}
	}
	return running
}

func taskState(status string) TaskState {
	switch status {
	case "success":
		return TaskSucceeded
	case "error", "aborted", "canceled":
		return TaskFailed
	default:
		return TaskRunning
	}
}

func taskResult(s TaskState) string {
	switch s {
	case TaskSucceeded:
		return "success"
	case TaskFailed:
		return "failure"
	case TaskRunning, TaskUnknown:
	}
	return "unknown"
}
