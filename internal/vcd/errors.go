package vcd

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Sentinels say what a caller can do about a failed call. Test them with [errors.Is]; every error of a VCD call
// wraps exactly one of them.
var (
	// ErrNotFound means that the entity does not exist: VCD answered 404, or a query found nothing.
	ErrNotFound = errors.New("not found")
	// ErrForbidden means that VCD refuses: a right is missing, or the entity does not exist. VCD does not tell
	// these apart, so this is no proof that something is gone.
	ErrForbidden = errors.New("forbidden")
	// ErrBusy means that a task holds the entity; retry when it ends.
	ErrBusy = errors.New("busy")
	// ErrThrottled means that VCD asked us to slow down; see [RetryAfter].
	ErrThrottled = errors.New("throttled")
	// ErrUnauthorized means that the credentials were refused.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrInvalid means that the request can never succeed as it is.
	ErrInvalid = errors.New("invalid request")
	// ErrQuota means that a quota or the capacity of a VDC is used up.
	ErrQuota = errors.New("quota exceeded")
	// ErrConflict means that something of that name exists already.
	ErrConflict = errors.New("name in use")
	// ErrUnavailable means that VCD could not be reached, did not answer in time or failed inside.
	ErrUnavailable = errors.New("unavailable")
	// ErrTLS means that the certificate of the site is not trusted.
	ErrTLS = errors.New("certificate not trusted")
)

// A StatusError is what VCD answered to a call or reported for a task. Its text is the same for the same
// failure: identifiers of requests and tasks are taken out.
type StatusError struct {
	Status    int    // HTTP status code; 0 for a failed task
	Code      string // minor error code, such as BUSY_ENTITY
	Message   string
	Operation string // the call, as in metrics

	retryAfter time.Duration
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

// kindByCode holds the minor error codes that say more than the HTTP status. VCD answers 400 or 500 for most of them.
var kindByCode = map[string]error{
	"BUSY_ENTITY":                       ErrBusy,
	"DUPLICATE_NAME":                    ErrConflict,
	"ACCESS_TO_RESOURCE_IS_FORBIDDEN":   ErrForbidden,
	"RESOURCE_NOT_FOUND":                ErrNotFound,
	"NOT_FOUND":                         ErrNotFound,
	"OPERATION_LIMITS_EXCEEDED":         ErrThrottled,
	"TOO_MANY_REQUESTS":                 ErrThrottled,
	"INSUFFICIENT_RESOURCES":            ErrQuota,
	"QUOTA_EXCEEDED":                    ErrQuota,
	"VDC_VM_QUOTA_EXCEEDED":             ErrQuota,
	"STORAGE_QUOTA_EXCEEDED":            ErrQuota,
	"VDC_MEMORY_ALLOCATION_EXCEEDED":    ErrQuota,
	"VDC_CPU_ALLOCATION_EXCEEDED":       ErrQuota,
	"NETWORK_STATIC_IP_POOL_EXHAUSTED":  ErrQuota,
	"IP_ADDRESS_POOL_EXHAUSTED":         ErrQuota,
	"USER_QUOTA_EXCEEDED":               ErrQuota,
	"ORG_QUOTA_EXCEEDED":                ErrQuota,
	"RESOURCE_QUOTA_EXCEEDED":           ErrQuota,
	"POLICY_RESOURCE_QUOTA_EXCEEDED":    ErrQuota,
	"PROVIDER_VDC_CAPACITY_EXCEEDED":    ErrQuota,
	"INVALID_STATE":                     ErrInvalid,
	"BAD_REQUEST":                       ErrInvalid,
	"UNAUTHORIZED":                      ErrUnauthorized,
	"ENTITY_ALREADY_EXISTS":             ErrConflict,
	"NAME_ALREADY_EXISTS":               ErrConflict,
	"UNIQUE_CONSTRAINT_VIOLATION":       ErrConflict,
	"VAPP_NAME_ALREADY_EXISTS":          ErrConflict,
	"VM_NAME_ALREADY_EXISTS_IN_THE_ORG": ErrConflict,
}

func (e *StatusError) kind() error {
	if kind, ok := kindByCode[e.Code]; ok {
		return kind
	}
	switch e.Status {
	case http.StatusUnauthorized:
		return ErrUnauthorized
	case http.StatusForbidden:
		return ErrForbidden
	case http.StatusNotFound, http.StatusGone:
		return ErrNotFound
	case http.StatusTooManyRequests:
		return ErrThrottled
	case http.StatusConflict:
		return ErrConflict
	case http.StatusRequestTimeout:
		return ErrUnavailable
	case http.StatusServiceUnavailable:
		if e.retryAfter > 0 {
			return ErrThrottled
		}
	}
	if e.Status >= http.StatusBadRequest && e.Status < http.StatusInternalServerError {
		return ErrInvalid
	}
	return ErrUnavailable
}

// RetryAfter returns how long VCD asked to wait, or 0 if it did not say.
func RetryAfter(err error) time.Duration {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.retryAfter
	}
	return 0
}

// A LookupError says that an object that a person named cannot be used. It wraps [ErrNotFound] or [ErrInvalid].
type LookupError struct {
	Kind   string // what was looked for: "VDC", "network", "template", …
	Name   string
	In     string // where: "VDC acme-vdc", "catalog kubernetes"; may be empty
	Reason string // empty: there is none of that name
	Err    error  // ErrNotFound or ErrInvalid
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
	return what + " does not exist or may not be seen by this user"
}

// Unwrap lets [errors.Is] match the sentinels.
func (e *LookupError) Unwrap() error { return e.Err }

// IgnoreNotFound returns nil for errors that say that the entity does not exist.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
