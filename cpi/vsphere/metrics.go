// SPDX-License-Identifier: Apache-2.0

package vsphere

import "github.com/prometheus/client_golang/prometheus"

// NewRequests returns a counter of requests to vCenters, by vCenter and result.
func NewRequests() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capvcd_ccm_vcenter_requests_total",
		Help: "Number of requests to vCenters, by result.",
	}, []string{"vcenter", "result"})
}
