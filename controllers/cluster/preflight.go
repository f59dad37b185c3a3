// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/preflight"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
)

// reportPreflight reports what would keep machines from being created in the VDC that a pass found, and returns when to
// reconcile again. While it finds something, the VDC is read again.
func reportPreflight(s *scope, result ctrl.Result) ctrl.Result {
	vdc := s.home.vdc
	if vdc.ID == "" || preflight.Report(s.reconciler.Recorder, s.vcdCluster, vdc) {
		return result
	}
	s.session.ForgetVDC(vdc.Ref)
	s.reconciler.homes.Drop(s.vcdCluster.UID)
	if result.RequeueAfter == 0 || result.RequeueAfter > session.RemedyPoll {
		result.RequeueAfter = session.RemedyPoll
	}
	return result
}
