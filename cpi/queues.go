// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
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

// slotAt returns a slot at a location. It waits in order of arrival, up to patience, and then returns
// [loadbalancer.ErrBusy]. The returned function frees the slot.
func (q *queues) slotAt(ctx context.Context, location string, clock clock.Clock, patience time.Duration) (func(), error) {
	if free, ok := q.locations.try(location); ok {
		return free, nil
	}
	if patience == 0 {
		return nil, fmt.Errorf("waiting for other load balancers at %s: %w", location, loadbalancer.ErrBusy)
	}
	return q.locations.wait(ctx, location, clock.After(patience))
}
