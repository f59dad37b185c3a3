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
	// taskTimeout bounds the wait for one task.
	taskTimeout = 10 * time.Minute
	// busyTimeout bounds how long a request is repeated that others keep from being accepted.
	busyTimeout = 2 * time.Minute
)

var uuid = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)

// bare returns the UUID in a URN or address; empty if there is none.
func bare(id string) string { return strings.ToLower(uuid.FindString(id)) }

func vAppPath(id string) string { return "/api/vApp/vapp-" + bare(id) }

func vmPath(id string) string { return "/api/vApp/vm-" + bare(id) }

// A task is an operation of VCD as it was last read.
type task struct {
	id      string // UUID; empty if the operation was done at once
	running bool
	err     error // why it failed
}

// A taskError is why a task failed.
type taskError struct{ state, code, message string }

// Error implements error.
func (e *taskError) Error() string {
	return fmt.Sprintf("the task ended as %s: %s %s", e.state, e.code, e.message)
}

// refused reports whether VCD refused a request, or its task failed: it did not want what was asked for. Missing rights
// and busy objects are not refusals.
func refused(err error) bool {
	if _, ok := errors.AsType[*taskError](err); ok {
		return true
	}
	return errors.Is(err, vcd.ErrInvalid) || errors.Is(err, vcd.ErrConflict)
}

// xmlCall is a call of the XML API with a body of a type, given without the prefix of VCD's media types.
func xmlCall(method, path, kind, body string) vcd.RawCall {
	call := vcd.RawCall{Method: method, Path: path}
	if body != "" {
		call.ContentType = "application/vnd.vmware.vcloud." + kind + "+xml"
		call.Body = []byte(xml.Header + body)
	}
	return call
}

// jsonPost is a request of the JSON API that creates an object.
func jsonPost(path string, body map[string]any) vcd.RawCall {
	encoded, _ := json.Marshal(body) // Texts, numbers and maps of them can be encoded.
	return vcd.RawCall{
		Method: http.MethodPost,
		Path:   path,
		JSON:   true,
		Body:   encoded,
	}
}

// A caller makes calls and waits for their tasks.
type caller struct {
	session *vcd.Session
	poll    time.Duration // between two looks at a task
}

// start makes a call and returns the id of the task that it started; empty if all was done at once.
func (c caller) start(ctx context.Context, call vcd.RawCall) (string, error) {
	got, err := c.session.Raw(ctx, call)
	if err != nil {
		return "", err
	}
	if location := got.Header.Get("Location"); strings.Contains(location, "/task/") {
		return bare(location), nil
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
		return bare(doc.HRef), nil
	case len(doc.Tasks) > 0:
		return bare(doc.Tasks[0].HRef), nil
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

// await waits until a task has ended, and returns why it failed.
func (c caller) await(ctx context.Context, id string) error {
	deadline := time.Now().Add(taskTimeout)
	for {
		t, err := c.read(ctx, id)
		switch {
		case errors.Is(err, vcd.ErrForbidden) && ctx.Err() == nil:
			return nil // What a task worked on is gone, and the task is not shown any more.
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

// pause waits until VCD is asked again.
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

// once makes a call and waits for its task.
func (c caller) once(ctx context.Context, call vcd.RawCall) error {
	id, err := c.start(ctx, call)
	if err != nil {
		return err
	}
	return c.await(ctx, id)
}

// do makes a call that takes no part in what a probe asks: it is repeated while the objects are busy.
func (c caller) do(ctx context.Context, call vcd.RawCall) error {
	return c.unbusy(ctx, func() error { return c.once(ctx, call) })
}

// unbusy repeats something while it is refused because objects are busy.
func (c caller) unbusy(ctx context.Context, f func() error) error {
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

// finish waits for a task that one of the client's calls started, and repeats the call while objects are busy.
func (c caller) finish(ctx context.Context, start func() (vcd.Task, error)) error {
	return c.unbusy(ctx, func() error {
		t, err := start()
		if err != nil {
			return err
		}
		return c.await(ctx, bare(t.ID))
	})
}

// get reads a document of the JSON API.
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

// escaped returns a text as it stands in XML.
func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // A builder takes everything.
	return out.String()
}
