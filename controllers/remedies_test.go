package controllers

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMachineWhoseCreationWasRefusedGoesAtOnce(t *testing.T) {
	w := newWorld(t, machines("a")...)
	w.ready()
	w.sim.Faults().Add(vcdsim.Fault{Operation: "POST /api/vdc/action/composeVApp", Status: http.StatusBadRequest, Code: "QUOTA_EXCEEDED"})
	w.eventuallyMachine("a", clusterv1.ReadyCondition, infrav1.QuotaExceededReason)
	w.Expect(w.vcdMachine("a").Annotations).NotTo(HaveKey(infrav1.CreationRequestedAnnotation))

	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("a"))).To(Succeed())

	w.Expect(w.isGone("a")).To(BeTrue())
}

func TestMachineWhoseCreationWasRefusedAfterALostAnswerIsLookedForTwice(t *testing.T) {
	w := newWorld(t, machines("a")...)
	w.ready()
	const compose = "POST /api/vdc/action/composeVApp"
	w.sim.Faults().Add(vcdsim.Fault{Operation: compose, DropBefore: true, Count: 1})
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine("a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.sim.Faults().List()).To(BeEmpty())
	}, patience, "5ms").Should(Succeed())
	w.sim.Faults().Add(vcdsim.Fault{Operation: compose, Status: http.StatusBadRequest, Code: "QUOTA_EXCEEDED"})
	w.skipAhead()
	w.eventuallyMachine("a", clusterv1.ReadyCondition, infrav1.QuotaExceededReason)

	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("a"))).To(Succeed())

	w.Expect(w.isGone("a")).To(BeFalse())
}

func TestCredentialsThatWorkedBeforeARestartAreTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.ready()
	password := func(password string) {
		w.sim.Edit(func(e *vcdsim.Editor) {
			e.SetPassword("acme", "capvcd", password)
			e.ExpireSessions()
		})
	}
	password("the directory behind VCD is away")
	w.restart(t, events.NewFakeRecorder(100))
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.CredentialsRefusedReason)
	password("password")
	_, err := w.reconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(conditions.IsTrue(w.vcdCluster(), clusterv1.ReadyCondition)).To(BeFalse(), "it is too early")

	w.clock.Store(int64(11 * time.Minute))

	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}
