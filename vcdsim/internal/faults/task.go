// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// TaskError returns the error of a task that the rule lets fail.
func (f *Fault) TaskError() *store.Refusal {
	status := f.Status
	code := f.Code
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if code == "" {
		code = store.CodeInternal
	}
	return store.Refuse(status, code, "%s", f.Message)
}
