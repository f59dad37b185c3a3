// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"errors"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// Sentinels classify failed requests by the possible reaction of the caller. Test them with [errors.Is]. Every error of
// a request to VCD wraps exactly one of them.
var (
	// ErrNotFound means that the entity does not exist: VCD returned 404, or a query found nothing.
	ErrNotFound = failure.ErrNotFound
	// ErrForbidden means that a right is missing or that the entity does not exist. VCD does not distinguish these, so
	// this error is no proof that something is gone.
	ErrForbidden = failure.ErrForbidden
	// ErrBusy means that a task locks the entity. Retry when the task has finished.
	ErrBusy = failure.ErrBusy
	// ErrThrottled means that VCD throttles requests. See [RetryAfter].
	ErrThrottled = failure.ErrThrottled
	// ErrLater means that the request was not sent, because the site may not get more requests at the moment and others
	// come first, or because another caller still reads the same list. See [RetryAfter]. It is no evidence about VCD.
	ErrLater = failure.ErrLater
	// ErrUnauthorized means that VCD rejected the credentials.
	ErrUnauthorized = failure.ErrUnauthorized
	// ErrInvalid means that the request can never succeed unchanged.
	ErrInvalid = failure.ErrInvalid
	// ErrAmbiguous means that several objects have the given name.
	ErrAmbiguous = failure.ErrAmbiguous
	// ErrQuota means that a quota or the capacity of a VDC is exhausted.
	ErrQuota = failure.ErrQuota
	// ErrConflict means that an object with the name already exists.
	ErrConflict = failure.ErrConflict
	// ErrChanged means that the object was changed after it was read. Read it again.
	ErrChanged = failure.ErrChanged
	// ErrUnavailable means that VCD could not be reached, did not respond in time or had an internal failure.
	ErrUnavailable = failure.ErrUnavailable
	// ErrTLS means that the certificate of the site is not trusted.
	ErrTLS = failure.ErrTLS
)

// A LookupError means that an object, given by name, cannot be used. It wraps [ErrNotFound], [ErrInvalid] or
// [ErrAmbiguous].
type LookupError = failure.LookupError

// A StatusError is the error that VCD returned for a request or reported for a task.
type StatusError = failure.StatusError

// RetryAfter returns the time to wait before a retry: the delay that VCD requested, or until the requests of others are
// sent. It returns 0 if that time is unknown.
func RetryAfter(err error) time.Duration { return failure.RetryAfter(err) }

// IgnoreNotFound returns nil if err means that the entity does not exist, otherwise err.
func IgnoreNotFound(err error) error { return failure.IgnoreNotFound(err) }

// readable returns nil if err means that the user may not read something or that it does not exist, otherwise err.
func readable(err error) error {
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) {
		return nil
	}
	return err
}

// shown reports whether a read succeeded. It only returns errors that are no evidence about the object.
func shown(err error) (bool, error) {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) {
		return false, nil
	}
	return err == nil, err
}
