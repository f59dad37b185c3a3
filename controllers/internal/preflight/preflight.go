// SPDX-License-Identifier: Apache-2.0

// Package preflight reports on a VCDCluster what would keep machines from being created, found in what was read of VCD
// anyway. It sends no request.
package preflight

import (
	"cmp"

	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Report sets the condition of c by its VDC as it was found, and reports whether nothing is wrong. What was not
// reported yet is also an event.
func Report(r events.EventRecorder, c *infrav1.VCDCluster, vdc vcd.VDC) (passed bool) {
	out := session.Problem(cmp.Or(checks.VDCEnabled(vdc, ""), checks.AnyStorage(vdc)))
	phases.Report(c, infrav1.PreflightPassedCondition, out, r)
	return out == phases.Done
}
