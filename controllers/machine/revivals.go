// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"math"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const (
	firstRevival = time.Minute
	// maxRevivals in a row are followed by a pause of revivalMemory. A VM that stayed on for so long begins anew.
	maxRevivals   = 5
	revivalMemory = time.Hour
)

// revivals is how often in a row a VM was powered on again, and when last.
type revivals struct {
	count int
	last  time.Time
}

// revivalsOf reads what is recorded.
func revivalsOf(recorded infrav1.PoweredOnAgain) revivals {
	if recorded.LastAt == nil {
		return revivals{}
	}
	return revivals{int(recorded.Count), recorded.LastAt.Time}
}

// record returns what [revivalsOf] reads.
func (r revivals) record() infrav1.PoweredOnAgain {
	return infrav1.PoweredOnAgain{
		Count:  int32(min(r.count, math.MaxInt32)), //nolint:gosec // not more
		LastAt: timeOf(r.last),
	}
}

// wait returns how long a VM is left off before it is powered on once more.
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

// next counts one more. What is long ago does not count.
func (r revivals) next(now time.Time) revivals {
	if now.Sub(r.last) >= revivalMemory {
		r.count = 0
	}
	return revivals{r.count + 1, now}
}
