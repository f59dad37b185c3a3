// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"k8s.io/apimachinery/pkg/types"
)

// Queues admit workers.
type queues struct {
	services  fairQueue // one per Service
	locations fairQueue // some per location
	choosing  fairQueue // one per location while it chooses addresses
}

// isBusy reports whether an attempt for a Service runs.
func (q *queues) isBusy(uid types.UID) bool {
	unlock, ok := q.services.try(string(uid))
	if ok {
		unlock()
	}
	return !ok
}
