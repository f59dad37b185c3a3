// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestARenamedVAppOfAMachineIsDeletedWithIt(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a")...)
	w.SetLayout(infrav1.VAppPerMachine)
	w.Ready("a")
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VApp("a").Name = "renamed" })

	w.DeleteMachine("a")

	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

func TestClusterWithoutAnyRequestToVCDCanBeDeleted(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*controllertest.Env){
		"an incorrect password": func(w *controllertest.Env) {
			secret := controllertest.NewSecret(w.Sim)
			secret.Data["password"] = []byte("wrong")
			w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
		},
		"no identity": func(w *controllertest.Env) {
			w.Expect(w.Client.Delete(w.Ctx, controllertest.NewIdentity(""))).To(Succeed())
		},
		"an unknown VDC": func(w *controllertest.Env) {
			c := w.VCDCluster()
			c.Spec.OVDC = "nope"
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
		},
		"a name that cannot be queried": func(w *controllertest.Env) {
			c := w.VCDCluster()
			c.Spec.VApp.Name = "prod, (new)"
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := controllertest.New(t)
			spoil(w)
			for range 5 {
				_, err := w.ReconcileCluster()
				w.Expect(err).NotTo(HaveOccurred())
			}

			w.DeleteCluster()
		})
	}
}

func TestMachineWithoutAnyRequestToVCDCanBeDeleted(t *testing.T) {
	w := controllertest.New(t,
		controllertest.NewMachine("a", func(m *infrav1.VCDMachine) { m.Spec.Template = "nope" })...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.TemplateNotFoundReason)
	w.Expect(w.VCDMachine("a").Spec.RecordedState.InstanceID).NotTo(BeZero())
	w.Expect(w.Client.Delete(w.Ctx, controllertest.NewIdentity(""))).To(Succeed())

	w.DeleteMachine("a")
	w.Expect(w.VCDCluster().Spec.RecordedState.VAppCount).To(BeZero())
}

func TestSuspendedVMIsNotOrphaned(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a")...)
	w.Ready("a")
	m := w.VCDMachine("a")
	m.Finalizers = nil
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())
	w.Edit("a", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Status = vcdsim.Suspended })

	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.EventuallyCluster(infrav1.VAppDeletedCondition, infrav1.VAppNotEmptyReason)
	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
}
