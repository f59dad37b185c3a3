// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMissingVAppIsGoneAfterTheSecondCheck(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.DeleteMachine("cp-0")
	w.DeleteVAppByHand(t, controllertest.ClusterName)
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: "GET /api/query type=orgVdc",
		Status:    http.StatusForbidden,
		Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
	})
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.ReadyReason)

	for _, d := range []time.Duration{0, time.Hour} { // The VDC is invisible, too.
		w.Later(d)
		w.Expect(w.IsClusterGone()).To(BeFalse())
		w.Expect(conditions.GetReason(w.VCDCluster(),
			infrav1.VAppDeletedCondition)).To(Equal(infrav1.VAppUnverifiedReason))
	}
	w.Sim.Faults().Clear()
	w.Expect(w.IsClusterGone()).To(BeFalse())
	w.Later(time.Hour + 62*time.Second)
	w.Expect(w.IsClusterGone()).To(BeTrue())
}

// TestVAppIsNotGoneWhenItBecomesInvisible revokes the access to the vApp of a cluster. VCD responds as if the vApp
// was deleted.
func TestVAppIsNotGoneWhenItBecomesInvisible(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		help func(*controllertest.Env)
		left int // vApps
	}{
		{
			name: "it is deleted when it reappears",
			help: func(w *controllertest.Env) { w.Hide(controllertest.ClusterName, false) },
		},
		{
			name: "it is kept on request of a user",
			help: func(w *controllertest.Env) {
				c := w.VCDCluster()
				notes.Set(c, infrav1.KeepVAppAnnotation, "true")
				w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			},
			left: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
			w.Ready("cp-0")
			w.DeleteMachine("cp-0")
			w.Hide(controllertest.ClusterName, true)
			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
			w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.ReadyReason)

			for _, d := range []time.Duration{0, 62 * time.Second, 48 * time.Hour} {
				w.Later(d)
				w.Expect(w.IsClusterGone()).To(BeFalse())
				w.Expect(conditions.GetReason(w.VCDCluster(),
					infrav1.VAppDeletedCondition)).To(Equal(infrav1.VAppUnverifiedReason))
			}
			w.Expect(conditions.GetMessage(w.VCDCluster(),
				infrav1.VAppDeletedCondition)).To(ContainSubstring(infrav1.KeepVAppAnnotation + "=true"))

			tt.help(w)
			w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
			w.Expect(w.Sim.State().VApps).To(HaveLen(tt.left))
		})
	}
}
