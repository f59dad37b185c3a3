// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strconv"
	"strings"
	"time"
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

// parseRevivals reads what [revivals.String] writes; nothing usable is none.
func parseRevivals(stored string) revivals {
	count, at, _ := strings.Cut(stored, " ")
	n, err := strconv.Atoi(count)
	last, errLast := time.Parse(time.RFC3339, at)
	if err != nil || errLast != nil || n < 0 {
		return revivals{}
	}
	return revivals{n, last}
}

// String implements fmt.Stringer.
func (r revivals) String() string {
	return fmt.Sprintf("%d %s", r.count, r.last.UTC().Format(time.RFC3339))
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
