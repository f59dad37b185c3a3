// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteproxy"
)

// Errors that CloudStack's errors are.
var (
	// ErrUnauthorized means that the key or the signature is not accepted.
	ErrUnauthorized = errors.New("the API key or secret is invalid")
	// ErrForbidden means that the user may not run the command, or not on this object.
	ErrForbidden = errors.New("the user has no permission")
	// ErrNotFound means that an object that a parameter names does not exist, or is not shown to the user.
	ErrNotFound = errors.New("not found")
	// ErrInvalid means that a parameter is wrong.
	ErrInvalid = errors.New("invalid parameter")
	// ErrConflict means that another rule is in the way.
	ErrConflict = errors.New("conflict with another rule")
	// ErrLimit means that a limit of the account, or the capacity of the cloud, is reached.
	ErrLimit = errors.New("limit exceeded")
	// ErrBusy means that CloudStack works on the object, or asks for fewer requests.
	ErrBusy = errors.New("CloudStack is busy")
	// ErrUnavailable means that CloudStack did not answer, or not completely.
	ErrUnavailable = errors.New("CloudStack does not respond")
	// ErrChanged means that a list changed each time while its pages were read: what it shows exists, and more may. It
	// is an [ErrUnavailable].
	ErrChanged = fmt.Errorf("the list changed while it was read: %w", ErrUnavailable)
	// ErrFailing means that CloudStack answers a list with an internal error, as it does while its database or a plugin
	// fails.
	ErrFailing = errors.New("CloudStack cannot list its objects")
	// ErrTLS means that the certificate of CloudStack is not trusted.
	ErrTLS = errors.New("the certificate is not trusted")
)

// Codes of CloudStack's errors, which are also the status of its answers.
const (
	codeUnauthorized  = http.StatusUnauthorized
	codeTooMany       = http.StatusTooManyRequests
	codeMalformed     = 430
	codeParameter     = 431
	codeUnsupported   = 432
	codeAccount       = 531
	codeAccountLimit  = 532
	codeCapacity      = 533
	codeUnavailable   = 534
	codeAllocation    = 535
	codeInUse         = 536
	codeRuleConflict  = 537
	codeInternalError = 530
	// csMissing is CloudStack's second code of errors about an id of no object.
	csMissing = 9999
)

var kinds = map[int]error{
	codeUnauthorized: ErrUnauthorized,
	codeTooMany:      ErrBusy,
	codeMalformed:    ErrInvalid,
	codeParameter:    ErrInvalid,
	codeUnsupported:  ErrForbidden,
	codeAccount:      ErrForbidden,
	codeAccountLimit: ErrLimit,
	codeCapacity:     ErrLimit,
	codeUnavailable:  ErrBusy,
	codeAllocation:   ErrLimit,
	codeInUse:        ErrBusy,
	codeRuleConflict: ErrConflict,
}

// An Error is an answer of CloudStack that reports a failure.
type Error struct {
	Code int    `json:"errorcode"`
	CS   int    `json:"cserrorcode"`
	Text string `json:"errortext"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("CloudStack returned status %d", e.Code)
	}
	return fmt.Sprintf("CloudStack returned status %d: %s", e.Code, e.Text)
}

// Is reports whether the error is one of the kinds of this package.
func (e *Error) Is(target error) bool {
	if e.Code == codeParameter && e.CS == csMissing {
		return target == ErrNotFound
	}
	if kind, ok := kinds[e.Code]; ok {
		return target == kind
	}
	return target == ErrUnavailable && e.Code != codeInternalError
}

// RefusesObject reports whether CloudStack refuses a request because of an object that it names, or may do so: it may
// accept another object. An internal error counts, as CloudStack refuses an address in quarantine by one. Limits of the
// account, missing permissions and lost answers have nothing to do with the object.
func RefusesObject(err error) bool {
	answer, ok := errors.AsType[*Error](err)
	if !ok || errors.Is(answer, ErrNotFound) {
		return false
	}
	switch answer.Code {
	case codeParameter, codeInternalError, codeAccount, codeCapacity, codeInUse, codeRuleConflict:
		return true
	}
	return false
}

// failing returns the error of a list. An internal error of another command may be about one object.
func failing(err error) error {
	if answer, ok := errors.AsType[*Error](err); ok && answer.Code == codeInternalError {
		return fmt.Errorf("%w: %w", ErrFailing, err)
	}
	return err
}

// unanswered returns the error of a request without an answer. It leaves out the request.
func unanswered(request *http.Request, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if proxy, ok := siteproxy.Explain(request, err); ok {
		return fmt.Errorf("%w: %w", ErrUnavailable, proxy)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w: %w", ErrTLS, err)
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Errorf("%w: %w", ErrTLS, err)
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return fmt.Errorf("%w: %w", ErrTLS, err)
	}
	return fmt.Errorf("%w%s: %w", ErrUnavailable, siteproxy.Via(request), err)
}
