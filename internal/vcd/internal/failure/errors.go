// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kinds of failures: every error of a request wraps exactly one. Package vcd exports them and documents what a caller
// can do about each.
var (
	ErrNotFound     = errors.New("not found")
	ErrForbidden    = errors.New("forbidden")
	ErrBusy         = errors.New("busy")
	ErrThrottled    = errors.New("throttled")
	ErrLater        = errors.New("later")
	ErrUnauthorized = errors.New("unauthorized")
	ErrInvalid      = errors.New("invalid request")
	ErrAmbiguous    = errors.New("ambiguous name")
	ErrQuota        = errors.New("quota exceeded")
	ErrConflict     = errors.New("name in use")
	ErrChanged      = errors.New("changed in the meantime")
	ErrUnavailable  = errors.New("unavailable")
	ErrTLS          = errors.New("certificate not trusted")
)

// A StatusError is the error that VCD returned for a request or reported for a task. Its text is the same for the same
// failure, because identifiers of requests and tasks are removed.
type StatusError struct {
	Status    int    // HTTP status code; 0 for a failed task
	Code      string // minor error code, such as BUSY_ENTITY
	Message   string
	Operation string // the request, as in metrics

	retryAfter time.Duration
	foreign    bool // from something in front of VCD: no evidence of absence or missing rights
}

// Error implements error.
func (e *StatusError) Error() string {
	message := e.Message
	if message == "" {
		message = http.StatusText(e.Status)
	}
	var where []string
	if e.Status != 0 {
		where = append(where, fmt.Sprintf("HTTP %d", e.Status))
	}
	if e.Code != "" {
		where = append(where, e.Code)
	}
	if len(where) == 0 {
		return message
	}
	return message + " (" + strings.Join(where, " ") + ")"
}

// Is lets [errors.Is] match the sentinels.
func (e *StatusError) Is(target error) bool { return target == e.kind() }

// kindByCode maps the minor error codes that are more specific than the HTTP status, because VCD returns status 400
// with them.
var kindByCode = map[string]error{
	"BUSY_ENTITY":                     ErrBusy,
	"DUPLICATE_NAME":                  ErrConflict,
	"OBJECT_VERSION_MISMATCH":         ErrChanged,
	"ACCESS_TO_RESOURCE_IS_FORBIDDEN": ErrForbidden,
	"RESOURCE_NOT_FOUND":              ErrNotFound,
}

var kindByStatus = map[int]error{
	http.StatusUnauthorized:   ErrUnauthorized,
	http.StatusForbidden:      ErrForbidden,
	http.StatusNotFound:       ErrNotFound,
	http.StatusNotAcceptable:  ErrUnavailable, // cells with different API versions, during an upgrade
	http.StatusGone:           ErrNotFound,
	http.StatusRequestTimeout: ErrUnavailable,
	http.StatusConflict:       ErrConflict,

	http.StatusPreconditionFailed: ErrChanged,
	http.StatusTooManyRequests:    ErrThrottled,
}

func (e *StatusError) kind() error {
	if kind, ok := kindByCode[e.Code]; ok {
		return kind
	}
	switch {
	case strings.Contains(e.Code, "QUOTA"):
		return ErrQuota
	case e.Status == http.StatusServiceUnavailable && e.retryAfter > 0:
		return ErrThrottled
	}
	return e.kindOfStatus()
}

func (e *StatusError) kindOfStatus() error {
	kind := kindByStatus[e.Status]
	switch {
	case e.foreign && kind != ErrUnauthorized && kind != ErrThrottled: //nolint:errorlint // sentinels as values of a map
		return ErrUnavailable
	case kind != nil:
		return kind
	case e.Status >= http.StatusBadRequest && e.Status < http.StatusInternalServerError:
		return ErrInvalid
	}
	return ErrUnavailable
}

// RetryAfter returns the time to wait before a retry: the delay that VCD requested, or until the requests of others are
// sent. It returns 0 if that time is unknown.
func RetryAfter(err error) time.Duration {
	if later, ok := errors.AsType[*laterError](err); ok {
		return later.after
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.retryAfter
	}
	return 0
}

// A laterError postpones a unit of work. Its text is constant.
type laterError struct{ after time.Duration }

// Later returns an error that postpones a unit of work. It wraps [ErrLater].
func Later(after time.Duration) error { return &laterError{after} }

// Error implements error.
func (e *laterError) Error() string { return "requests of other clusters are sent first" }

// Unwrap lets [errors.Is] match the sentinel.
func (e *laterError) Unwrap() error { return ErrLater }

// Later returns the time to wait before the request is sent again.
func (e *laterError) Later() time.Duration { return e.after }

// A LookupError means that an object, given by name, cannot be used. It wraps [ErrNotFound], [ErrInvalid] or
// [ErrAmbiguous].
type LookupError struct {
	Kind   string // kind of the object: "VDC", "network", "template", …
	Name   string
	In     string // container: "VDC acme-vdc", "catalog kubernetes"; may be empty
	Reason string // empty: no object has that name
	Err    error  // ErrNotFound, ErrInvalid or ErrAmbiguous
}

// Error implements error.
func (e *LookupError) Error() string {
	what := fmt.Sprintf("%s %q", e.Kind, e.Name)
	if e.In != "" {
		what += " in " + e.In
	}
	if e.Reason != "" {
		return what + " " + e.Reason
	}
	return what + " does not exist or is not visible to this user"
}

// Unwrap lets [errors.Is] match the sentinels.
func (e *LookupError) Unwrap() error { return e.Err }

// IgnoreNotFound returns nil if err means that the entity does not exist, otherwise err.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Wrap adds the operation and the ID of its object to an error. It returns nil for a nil error.
func Wrap(err error, doing, id string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", doing, id, err)
}
