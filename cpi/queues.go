// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
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
	repairs   fairQueue // one more caller per location: a repair or an update
	choosing  fairQueue // one caller per location, while it chooses addresses
}

// isBusy reports whether an attempt for a Service runs or is about to run.
func (q *queues) isBusy(uid types.UID) bool { return q.services.inUse(string(uid)) }

// slotForRepair returns a slot at a location without waiting. If none is free, it returns the one that only repairs and
// updates use: a freed slot goes to the caller that waits longest, so they would get none while creations and removals
// wait.
func (q *queues) slotForRepair(location string) (func(), error) {
	if free, ok := q.locations.try(location); ok {
		return free, nil
	}
	if free, ok := q.repairs.try(location); ok {
		return free, nil
	}
	return nil, loadbalancer.ErrBusy
}

// slotAt returns a slot at a location. It waits in order of arrival, up to patience, and then returns
// [loadbalancer.ErrBusy]. The returned function frees the slot.
func (q *queues) slotAt(ctx context.Context, location string, clock clock.Clock, patience time.Duration) (func(), error) {
	if free, ok := q.locations.try(location); ok {
		return free, nil
	}
	free, err := q.locations.wait(ctx, location, clock.After(patience))
	if errors.Is(err, loadbalancer.ErrBusy) {
		return nil, fmt.Errorf("waiting for other load balancers at %s: %w", location, err)
	}
	return free, err
}
