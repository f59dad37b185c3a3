// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMachineWithARejectedCreationIsDeletedAtOnce(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a")...)
	w.Ready()
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: "POST /api/vdc/action/composeVApp",
		Status:    http.StatusBadRequest,
		Code:      "QUOTA_EXCEEDED",
	})
	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.QuotaExceededReason)
	w.Expect(w.VCDMachine("a").Spec.RecordedState.CreationRequestedAt).To(BeZero())

	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())

	w.Expect(isGone(w, "a")).To(BeTrue())
}

func TestMachineRejectedAfterALostResponseIsSearchedTwice(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a")...)
	w.Ready()
	const compose = "POST /api/vdc/action/composeVApp"
	w.Sim.Faults().Add(vcdsim.Fault{Operation: compose, DropBefore: true, Count: 1})
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Sim.Faults().List()).To(BeEmpty())
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.Sim.Faults().Add(vcdsim.Fault{Operation: compose, Status: http.StatusBadRequest, Code: "QUOTA_EXCEEDED"})
	skipAhead(w)
	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.QuotaExceededReason)

	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())

	w.Expect(isGone(w, "a")).To(BeFalse())
}
