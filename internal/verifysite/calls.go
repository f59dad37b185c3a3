// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// taskTimeout limits the wait for one task.
	taskTimeout = 10 * time.Minute
	// busyTimeout limits how long a request is repeated while its objects are busy.
	busyTimeout = 2 * time.Minute
)

var uuid = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)

// uuidOf returns the UUID in a URN or URL, or the empty string.
func uuidOf(id string) string { return strings.ToLower(uuid.FindString(id)) }

func vAppPath(id string) string { return "/api/vApp/vapp-" + uuidOf(id) }

func vmPath(id string) string { return "/api/vApp/vm-" + uuidOf(id) }

// A task is a VCD task as it was last read.
type task struct {
	id      string // UUID; empty if the operation was completed at once
	running bool
	err     error // reason of the failure
}

// A taskError is the failure of a task.
type taskError struct{ state, code, message string }

// Error implements error.
func (e *taskError) Error() string {
	return fmt.Sprintf("the task ended as %s: %s %s", e.state, e.code, e.message)
}

// refused reports whether VCD rejected a request or its task failed, because VCD does not permit what was requested.
// Missing rights and busy objects are not refusals.
func refused(err error) bool {
	if _, ok := errors.AsType[*taskError](err); ok {
		return true
	}
	return errors.Is(err, vcd.ErrInvalid) || errors.Is(err, vcd.ErrConflict)
}

// xmlCall returns a request to the XML API. kind is the media type of the body without VCD's prefix.
func xmlCall(method, path, kind, body string) vcd.RawCall {
	call := vcd.RawCall{Method: method, Path: path}
	if body != "" {
		call.ContentType = "application/vnd.vmware.vcloud." + kind + "+xml"
		call.Body = []byte(xml.Header + body)
	}
	return call
}

// jsonPost returns a request to the JSON API that creates an object.
func jsonPost(path string, body map[string]any) vcd.RawCall {
	encoded, _ := json.Marshal(body) // strings, numbers and maps can always be encoded
	return vcd.RawCall{
		Method: http.MethodPost,
		Path:   path,
		JSON:   true,
		Body:   encoded,
	}
}

// A caller sends requests and waits for their tasks.
type caller struct {
	session *vcd.Session
	poll    time.Duration // interval for polling a task
}

// start sends a request and returns the ID of the task that it started. The ID is empty if the request was completed at
// once.
func (c caller) start(ctx context.Context, call vcd.RawCall) (string, error) {
	got, err := c.session.Raw(ctx, call)
	if err != nil {
		return "", err
	}
	if location := got.Header.Get("Location"); strings.Contains(location, "/task/") {
		return uuidOf(location), nil
	}
	if call.JSON || len(got.Body) == 0 {
		return "", nil
	}
	var doc struct {
		XMLName xml.Name
		HRef    string `xml:"href,attr"`
		Tasks   []struct {
			HRef string `xml:"href,attr"`
		} `xml:"Tasks>Task"`
	}
	if err := xml.Unmarshal(got.Body, &doc); err != nil {
		return "", fmt.Errorf("reading the response to %s %s: %w", call.Method, call.Path, err)
	}
	switch {
	case doc.XMLName.Local == "Task":
		return uuidOf(doc.HRef), nil
	case len(doc.Tasks) > 0:
		return uuidOf(doc.Tasks[0].HRef), nil
	}
	return "", nil
}

// read reads a task.
func (c caller) read(ctx context.Context, id string) (task, error) {
	if id == "" {
		return task{}, nil
	}
	got, err := c.session.Raw(ctx, xmlCall(http.MethodGet, "/api/task/"+id, "", ""))
	if err != nil {
		return task{}, fmt.Errorf("reading a task: %w", err)
	}
	var doc struct {
		Status string `xml:"status,attr"`
		Error  struct {
			Code    string `xml:"minorErrorCode,attr"`
			Message string `xml:"message,attr"`
		} `xml:"Error"`
	}
	if err := xml.Unmarshal(got.Body, &doc); err != nil {
		return task{}, fmt.Errorf("reading a task: %w", err)
	}
	t := task{id: id}
	switch doc.Status {
	case "queued", "preRunning", "running":
		t.running = true
	case "success":
	default:
		t.err = &taskError{state: doc.Status, code: doc.Error.Code, message: doc.Error.Message}
	}
	return t, nil
}

// await waits until a task has finished, and returns its error.
func (c caller) await(ctx context.Context, id string) error {
	deadline := time.Now().Add(taskTimeout)
	for {
		t, err := c.read(ctx, id)
		switch {
		case errors.Is(err, vcd.ErrForbidden) && ctx.Err() == nil:
			return nil // the object was deleted, so the task is no longer visible
		case err != nil:
			return err
		case !t.running:
			return t.err
		case time.Now().After(deadline):
			return fmt.Errorf("a task is still running after %s", taskTimeout)
		}
		if err := c.pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits for the polling interval.
func (c caller) pause(ctx context.Context) error {
	timer := time.NewTimer(c.poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// once sends a request and waits for its task.
func (c caller) once(ctx context.Context, call vcd.RawCall) error {
	id, err := c.start(ctx, call)
	if err != nil {
		return err
	}
	return c.await(ctx, id)
}

// do sends a request that is not itself the subject of a probe. It repeats the request while the objects are busy.
func (c caller) do(ctx context.Context, call vcd.RawCall) error {
	return c.retryBusy(ctx, func() error { return c.once(ctx, call) })
}

// retryBusy calls f again while it fails because objects are busy.
func (c caller) retryBusy(ctx context.Context, f func() error) error {
	deadline := time.Now().Add(busyTimeout)
	for {
		err := f()
		if !errors.Is(err, vcd.ErrBusy) || time.Now().After(deadline) {
			return err
		}
		if err := c.pause(ctx); err != nil {
			return err
		}
	}
}

// finish starts a task with a method of the client and waits for it. It calls start again while objects are busy.
func (c caller) finish(ctx context.Context, start func() (vcd.Task, error)) error {
	return c.retryBusy(ctx, func() error {
		t, err := start()
		if err != nil {
			return err
		}
		return c.await(ctx, uuidOf(t.ID))
	})
}

// get reads a document from the JSON API.
func (c caller) get(ctx context.Context, path, query string, into any) error {
	got, err := c.session.Raw(ctx, vcd.RawCall{Method: http.MethodGet, Path: path, Query: query, JSON: true})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(got.Body, into); err != nil {
		return fmt.Errorf("reading a response: %w", err)
	}
	return nil
}

// escaped returns a text escaped for XML.
func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // writes to a builder do not fail
	return out.String()
}
