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

// A Refusal is an error as VCD answers it: status, minor code and message. Tasks that fail carry one too.
type Refusal struct { //nolint:errname // what VCD does is to refuse
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

// BadRequest refuses a request that is wrong in itself.
func BadRequest(format string, args ...any) *Refusal {
	return Refuse(http.StatusBadRequest, CodeBadRequest, format, args...)
}

// Unauthorized refuses a request without a session.
func Unauthorized() *Refusal {
	return Refuse(http.StatusUnauthorized, CodeUnauthorized, "This operation is denied. You need to be authenticated.")
}

// Forbidden is VCD's answer when an entity does not exist or is not visible to the caller.
func Forbidden(operation, id string) *Refusal {
	return Refuse(http.StatusForbidden, CodeForbidden,
		"Either you need some or all of the following rights [Base] to perform operations [%s] for %s or the target "+
			"entity is invalid.",
		operation, id)
}

// DuplicateName refuses a name that is taken.
func DuplicateName(name string) *Refusal {
	return Refuse(http.StatusBadRequest, codeDuplicate, "The VCD entity %s already exists.", name)
}
