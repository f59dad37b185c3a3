// SPDX-License-Identifier: Apache-2.0

// Package preflight reports on a VCDCluster what would keep machines from being created, found in what was read of VCD
// anyway. It sends no request.
package preflight

import (
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/doctor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reasons of the condition, by the check that found something.
var reasons = map[string]string{
	doctor.CheckVDC:     infrav1.VDCDisabledReason,
	doctor.CheckStorage: infrav1.StorageProfileNotFoundReason,
}

// Report sets the condition of c by its VDC as it was found, and reports whether nothing is wrong. What was not
// reported yet is also an event.
func Report(r events.EventRecorder, c *infrav1.VCDCluster, vdc vcd.VDC) (passed bool) {
	found := doctor.Found(vdc)
	if len(found) == 0 {
		phases.Report(c, infrav1.PreflightPassedCondition, phases.Done, r)
		return true
	}
	first := found[0]
	phases.Report(c, infrav1.PreflightPassedCondition,
		phases.Fail(session.RemedyPoll, reasons[first.Check], "%s: %s", first.Message, first.Remedy), r)
	return false
}
