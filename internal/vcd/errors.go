// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"errors"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// Sentinels say what a caller can do about a failed call. Test them with [errors.Is]; every error of a VCD call
// wraps exactly one of them.
var (
	// ErrNotFound means that the entity does not exist: VCD answered 404, or a query found nothing.
	ErrNotFound = failure.ErrNotFound
	// ErrForbidden means that VCD refuses: a right is missing, or the entity does not exist. VCD does not
	// distinguish these, so this is no proof that something is gone.
	ErrForbidden = failure.ErrForbidden
	// ErrBusy means that a task holds the entity; retry when it ends.
	ErrBusy = failure.ErrBusy
	// ErrThrottled means that VCD asked us to slow down; see [RetryAfter].
	ErrThrottled = failure.ErrThrottled
	// ErrLater means that the call was not made, because a site may not get more calls at the moment and others come
	// first; see [RetryAfter]. It says nothing of VCD.
	ErrLater = failure.ErrLater
	// ErrUnauthorized means that the credentials were refused.
	ErrUnauthorized = failure.ErrUnauthorized
	// ErrInvalid means that the request can never succeed as it is.
	ErrInvalid = failure.ErrInvalid
	// ErrAmbiguous means that several objects have the given name.
	ErrAmbiguous = failure.ErrAmbiguous
	// ErrQuota means that a quota or the capacity of a VDC is used up.
	ErrQuota = failure.ErrQuota
	// ErrConflict means that something of that name exists already.
	ErrConflict = failure.ErrConflict
	// ErrChanged means that the object was changed after it was read; read it again.
	ErrChanged = failure.ErrChanged
	// ErrUnavailable means that VCD could not be reached, did not answer in time or failed inside.
	ErrUnavailable = failure.ErrUnavailable
	// ErrTLS means that the certificate of the site is not trusted.
	ErrTLS = failure.ErrTLS
)

// A LookupError is about an object, given by name, that cannot be used. It wraps [ErrNotFound], [ErrInvalid] or
// [ErrAmbiguous].
type LookupError = failure.LookupError

// A StatusError is what VCD answered to a call that failed.
type StatusError = failure.StatusError

// RetryAfter returns how long to wait, as VCD asked or because others come first; 0 if not known.
func RetryAfter(err error) time.Duration { return failure.RetryAfter(err) }

// IgnoreNotFound returns nil for errors that say that the entity does not exist.
func IgnoreNotFound(err error) error { return failure.IgnoreNotFound(err) }

// readable drops the errors of a user who may not read something.
func readable(err error) error {
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) {
		return nil
	}
	return err
}

// shown reports whether a read succeeded; its error is only of those that say nothing about the object.
func shown(err error) (bool, error) {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) {
		return false, nil
	}
	return err == nil, err
}
