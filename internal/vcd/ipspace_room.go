// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"strconv"
)

// unlimited is a quota without a limit.
const unlimited = -1

type wireRoom struct {
	Ranges *struct {
		Quota  *int64 `json:"defaultFloatingIpQuota"`
		Ranges []struct {
			Total     string `json:"totalIpCount"`
			Allocated string `json:"allocatedIpCount"`
		} `json:"ipRanges"`
	} `json:"ipSpaceRanges"`
}

// Room returns how many more floating IPs of an IP Space the organization can have: what is left, and what the quota
// leaves. A quota that the provider gave the organization alone is not shown to tenants.
func (i *IPSpaces) Room(ctx context.Context, space string) (int64, error) {
	doc, err := read(ctx, i.client, "IP Space", space, spacePath(space), func(w *wireRoom) wireRoom { return *w })
	if err != nil || doc.Ranges == nil {
		return 0, err
	}
	var left int64
	for _, r := range doc.Ranges.Ranges {
		total, _ := strconv.ParseInt(r.Total, 10, 64) // what is no number counts nothing
		allocated, _ := strconv.ParseInt(r.Allocated, 10, 64)
		left += max(0, total-allocated)
	}
	if doc.Ranges.Quota == nil || *doc.Ranges.Quota == unlimited {
		return left, nil
	}
	own, err := i.FloatingIPs(ctx, space)
	return min(left, max(0, *doc.Ranges.Quota-int64(len(own)))), err
}
