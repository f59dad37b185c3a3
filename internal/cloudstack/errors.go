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

// Kinds of CloudStack errors.
var (
	// ErrUnauthorized means that the key or the signature is rejected.
	ErrUnauthorized = errors.New("the API key or secret is invalid")
	// ErrForbidden means that the user may not run the command, or not on this object.
	ErrForbidden = errors.New("the user has no permission")
	// ErrNotFound means that an object in a parameter does not exist or is not visible to the user.
	ErrNotFound = errors.New("not found")
	// ErrInvalid means that a parameter is invalid.
	ErrInvalid = errors.New("invalid parameter")
	// ErrConflict means that the request conflicts with another rule.
	ErrConflict = errors.New("conflict with another rule")
	// ErrLimit means that a limit of the account, or the capacity of the cloud, is reached.
	ErrLimit = errors.New("limit exceeded")
	// ErrBusy means that CloudStack is working on the object, or throttles requests.
	ErrBusy = errors.New("CloudStack is busy")
	// ErrUnavailable means that CloudStack did not respond, or not completely.
	ErrUnavailable = errors.New("CloudStack does not respond")
	// ErrChanged means that a list changed each time while its pages were read. The listed elements exist, and others
	// may exist too. It wraps [ErrUnavailable].
	ErrChanged = fmt.Errorf("the list changed while it was read: %w", ErrUnavailable)
	// ErrFailing means that CloudStack responds to a list with an internal error, as it does while its database or a
	// plugin fails.
	ErrFailing = errors.New("CloudStack cannot list its objects")
	// ErrTLS means that the certificate of CloudStack is not trusted.
	ErrTLS = errors.New("the certificate is not trusted")
)

// Codes of CloudStack's errors, which are also the status of its responses.
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
	// csMissing is the second code of errors about an ID without an object.
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

// An Error is an error response of CloudStack.
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

// RefusesObject reports whether CloudStack rejects a request because of an object in it, or may do so, so that it may
// accept another object. Internal errors count, because CloudStack rejects an address in quarantine with one. Account
// limits, missing permissions and lost responses are unrelated to the object.
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

// failing returns the error of a list command. An internal error of any other command may concern one object.
func failing(err error) error {
	if answer, ok := errors.AsType[*Error](err); ok && answer.Code == codeInternalError {
		return fmt.Errorf("%w: %w", ErrFailing, err)
	}
	return err
}

// requestError returns the error of a request without a response. It omits the request, which contains secrets.
func requestError(request *http.Request, err error) error {
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
