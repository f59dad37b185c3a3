// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"math"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const (
	firstRevival = time.Minute
	// maxRevivals is the number of attempts in a row before a pause of revivalMemory. The count starts over for a VM
	// that stayed on for that long.
	maxRevivals   = 5
	revivalMemory = time.Hour
)

// revivals counts how often in a row a VM was powered on again, and holds the time of the last attempt.
type revivals struct {
	count int
	last  time.Time
}

// revivalsOf converts the recorded state to revivals.
func revivalsOf(recorded infrav1.PoweredOnAgain) revivals {
	if recorded.LastAt == nil {
		return revivals{}
	}
	return revivals{int(recorded.Count), recorded.LastAt.Time}
}

// record is the inverse of [revivalsOf].
func (r revivals) record() infrav1.PoweredOnAgain {
	return infrav1.PoweredOnAgain{
		Count:  int32(min(r.count, math.MaxInt32)), //nolint:gosec // not more
		LastAt: timeOf(r.last),
	}
}

// wait returns how long the VM stays off before it is powered on again.
func (r revivals) wait(now time.Time) time.Duration {
	pause := revivalMemory
	switch {
	case r.count == 0 || r.last.After(now):
		return 0
	case r.count < maxRevivals:
		pause = firstRevival << (r.count - 1)
	}
	return max(0, r.last.Add(pause).Sub(now))
}

// next adds an attempt at time now. It discards a count that is older than revivalMemory.
func (r revivals) next(now time.Time) revivals {
	if now.Sub(r.last) >= revivalMemory {
		r.count = 0
	}
	return revivals{r.count + 1, now}
}
