package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestVAppThatSomebodyRenamedGoesWithItsCluster(t *testing.T) {
	w := newWorld(t, machines("a")...)
	w.ready("a")
	w.sim.Edit(func(e *vcdsim.Editor) { e.VApp(testCluster).Name = "renamed" })
	w.later(2 * lookEvery)
	w.eventuallyMachine("a", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.deleteMachine("a")
	w.deleteCluster()

	w.Expect(w.sim.State().VApps).To(BeEmpty())
}

func TestVAppOfAMachineThatSomebodyRenamedGoesWithIt(t *testing.T) {
	w := newWorld(t, machines("a")...)
	w.setLayout(infrav1.VAppPerMachine)
	w.ready("a")
	w.sim.Edit(func(e *vcdsim.Editor) { e.VApp("a").Name = "renamed" })

	w.deleteMachine("a")

	w.Expect(w.sim.State().VApps).To(BeEmpty())
}

func TestClusterForWhichVCDWasNeverAskedForAnythingCanBeDeleted(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*world){
		"a wrong password": func(w *world) {
			secret := testSecret(w.sim)
			secret.Data["password"] = []byte("wrong")
			w.Expect(w.client.Update(w.ctx, secret)).To(Succeed())
		},
		"no identity": func(w *world) {
			w.Expect(w.client.Delete(w.ctx, testIdentity(""))).To(Succeed())
		},
		"an unknown VDC": func(w *world) {
			c := w.vcdCluster()
			c.Spec.OVDC = "nope"
			w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
		},
		"a name that cannot be looked for": func(w *world) {
			c := w.vcdCluster()
			c.Spec.VApp.Name = "prod, (new)"
			w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			spoil(w)
			for range 5 {
				_, err := w.reconcileCluster()
				w.Expect(err).NotTo(HaveOccurred())
			}

			w.deleteCluster()
		})
	}
}

func TestMachineForWhichVCDWasNeverAskedForAnythingCanBeDeleted(t *testing.T) {
	w := newWorld(t, testMachine("a", func(m *infrav1.VCDMachine) { m.Spec.Template = "nope" })...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.TemplateNotFoundReason)
	w.Expect(w.vcdMachine("a").Annotations).To(HaveKey(infrav1.InstanceIDAnnotation))
	w.Expect(w.client.Delete(w.ctx, testIdentity(""))).To(Succeed())

	w.deleteMachine("a")
	w.Expect(w.vcdCluster().Annotations).NotTo(HaveKey(infrav1.VAppCreatedAnnotation))
}

func TestSuspendedVMIsNoLeftover(t *testing.T) {
	w := newWorld(t, machines("a")...)
	w.ready("a")
	m := w.vcdMachine("a")
	m.Finalizers = nil
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, m)).To(Succeed())
	w.edit("a", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Status = vcdsim.Suspended })

	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	w.eventuallyCluster(infrav1.VAppDeletedCondition, infrav1.VAppNotEmptyReason)
	w.Expect(w.sim.State().VMs).To(HaveLen(1))
}
