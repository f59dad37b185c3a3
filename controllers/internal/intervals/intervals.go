// SPDX-License-Identifier: Apache-2.0

// Package intervals holds the delays between the attempts of a reconcile that waits for VCD.
package intervals

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// Task is a fallback, because the end of a task triggers a reconcile.
	Task = 10 * time.Second
	// Busy is for entities that the task of another user has locked.
	Busy = 3 * time.Second
	// Unreachable is for a VCD that does not respond.
	Unreachable = 30 * time.Second
	// Remedy is for problems that a user must fix in VCD.
	Remedy = phases.RemedyPoll
	// FirstRetry is the delay after the first failure. It doubles with each failure.
	FirstRetry = 15 * time.Second
)
