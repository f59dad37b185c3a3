// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/preflight"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// reportPreflight reports problems that would keep machines from being created in the VDC of a pass. If there is one,
// the VDC is read again soon.
func reportPreflight(s *scope, pass *phases.Pass) {
	vdc := s.home.vdc
	if vdc.ID == "" || preflight.Report(s.reconciler.Recorder, s.vcdCluster, vdc) {
		return
	}
	s.session.ForgetVDC(vdc.Ref)
	s.reconciler.homes.Drop(s.vcdCluster.UID)
	pass.Within(intervals.Remedy)
}
