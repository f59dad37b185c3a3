// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"k8s.io/apimachinery/pkg/types"
)

// queues limit concurrent work.
type queues struct {
	services  fairQueue // one caller per Service
	locations fairQueue // several callers per location
	choosing  fairQueue // one caller per location, while it chooses addresses
}

// isBusy reports whether an attempt for a Service runs.
func (q *queues) isBusy(uid types.UID) bool {
	unlock, ok := q.services.try(string(uid))
	if ok {
		unlock()
	}
	return !ok
}
