// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/preflight"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
)

// preflight reports what would keep machines from being created in the VDC that was found, and returns when to
// reconcile again. While it finds something, the VDC is read again.
func (s *scope) preflight(result ctrl.Result) ctrl.Result {
	if s.vdc.ID == "" || preflight.Report(s.reconciler.Recorder, s.vcdCluster, s.vdc) {
		return result
	}
	s.session.ForgetVDC(s.vdc.Ref)
	s.reconciler.homes.Drop(s.vcdCluster.UID)
	if result.RequeueAfter == 0 || result.RequeueAfter > session.RemedyPoll {
		result.RequeueAfter = session.RemedyPoll
	}
	return result
}
