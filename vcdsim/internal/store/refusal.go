// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"net/http"
)

// Minor error codes.
const (
	CodeForbidden    = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"
	CodeBadRequest   = "BAD_REQUEST"
	codeDuplicate    = "DUPLICATE_NAME"
	CodeBusy         = "BUSY_ENTITY"
	CodeUnauthorized = "UNAUTHORIZED"
	CodeNotFound     = "NOT_FOUND"
	CodeInternal     = "INTERNAL_SERVER_ERROR"
)

// A Refusal is an error in the form of VCD: status, minor code and message. Failed tasks contain one, too.
type Refusal struct { //nolint:errname // named for VCD's refusal of a request
	Status  int
	Code    string
	Message string
	Header  map[string]string
}

// Error implements error.
func (e *Refusal) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message)
}

// Refuse returns a refusal.
func Refuse(status int, code, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// BadRequest returns the error for an invalid request.
func BadRequest(format string, args ...any) *Refusal {
	return Refuse(http.StatusBadRequest, CodeBadRequest, format, args...)
}

// Unauthorized returns the error for a request without a session.
func Unauthorized() *Refusal {
	return Refuse(http.StatusUnauthorized, CodeUnauthorized, "This operation is denied. You need to be authenticated.")
}

// Forbidden returns VCD's error for an entity that does not exist or is not visible to the caller.
func Forbidden(operation, id string) *Refusal {
	return Refuse(http.StatusForbidden, CodeForbidden,
		"Either you need some or all of the following rights [Base] to perform operations [%s] for %s or the target entity is invalid.",
		operation, id)
}

// DuplicateName returns the error for a name that is already in use.
func DuplicateName(name string) *Refusal {
	return Refuse(http.StatusBadRequest, codeDuplicate, "The VCD entity %s already exists.", name)
}
