// SPDX-License-Identifier: Apache-2.0

// Package preflight reports on a VCDCluster problems that would keep machines from being created. It checks data that
// was read from VCD for other purposes, and sends no requests.
package preflight

import (
	"cmp"

	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Report sets the condition of c from the state of its VDC, and reports whether the checks passed. A problem that was
// not reported before is also recorded as an event.
func Report(r events.EventRecorder, c *infrav1.VCDCluster, vdc vcd.VDC) (passed bool) {
	out := problems.OfFinding(cmp.Or(checks.VDCEnabled(vdc, ""), checks.AnyStorage(vdc)))
	phases.Report(c, infrav1.PreflightPassedCondition, out, r)
	return out == phases.Done
}
