// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"fmt"
)

// updatesCIDRs reports whether CloudStack can change the CIDRs of a rule. It returns false if the version cannot be
// read, so that rules are replaced instead.
func (b *Balancer) updatesCIDRs(ctx context.Context) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version == "" {
		version, err := b.opts.Client.Version(ctx)
		if err != nil {
			return false
		}
		b.version = version
	}
	return atLeast(b.version, 4, 22)
}

// atLeast reports whether a version, such as 4.20.1.0, is at least another one.
func atLeast(version string, major, minor int) bool {
	var have [2]int
	if _, err := fmt.Sscanf(version, "%d.%d", &have[0], &have[1]); err != nil {
		return false
	}
	return have[0] > major || have[0] == major && have[1] >= minor
}
