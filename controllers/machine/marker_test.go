// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A pendingChange requests a change to a machine's VM.
type pendingChange struct {
	name    string
	request func(*controllertest.Env, string)
}

func pendingChanges() []pendingChange {
	return []pendingChange{
		{
			"power it on",
			func(w *controllertest.Env, name string) {
				m := w.VCDMachine(name)
				m.Spec.PowerOffPolicy = infrav1.PowerOffPowerOn
				w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
				w.Sim.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM("victim")) })
			},
		},
		{
			"expand its disk",
			func(w *controllertest.Env, name string) {
				m := w.VCDMachine(name)
				m.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
				w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
			},
		},
		{
			"remove its bootstrap data",
			func(w *controllertest.Env, name string) {
				w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("victim").ExtraConfig[guestinfo.KeyUserdata] = "left" })
				nodeOf(w, name)
			},
		},
	}
}

// nodeOf sets the Node of a Machine.
func nodeOf(w *controllertest.Env, name string) {
	m := &clusterv1.Machine{}
	w.Expect(w.Client.Get(w.Ctx, keyOf(name), m)).To(Succeed())
	m.Status.NodeRef = clusterv1.MachineNodeReference{Name: name}
	w.Expect(w.Client.Status().Update(w.Ctx, m)).To(Succeed())
}

func TestNothingIsWrittenToAVMWithoutTheMarkerOfItsMachine(t *testing.T) {
	t.Parallel()
	for _, tt := range pendingChanges() {
		t.Run("a removed marker: "+tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("victim")...)
			makeIdle(w, "victim")
			w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("victim").Description = "mine" })
			tt.request(w, "victim")

			expectNoWrites(t, w, "victim")
		})
		t.Run("a manually recorded URN: "+tt.name, func(t *testing.T) {
			w := controllertest.New(t,
				append(controllertest.NewMachine("victim"), controllertest.NewMachine("forged")...)...)
			makeIdle(w, "victim")
			forge(w)
			tt.request(w, "forged")

			expectNoWrites(t, w, "forged")
		})
	}
}

// forge makes a new machine claim the VM of another one.
func forge(w *controllertest.Env) {
	m := w.VCDMachine("forged")
	m.Spec.ProviderID = providerid.Format("urn:vcloud:vm:" + w.Sim.State().VMs[0].ID)
	m.Spec.RecordedState = infrav1.VCDMachineRecordedState{
		PoweredOnAt: ptr.To(metav1.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)),
		InstanceID:  string(m.UID),
		VMName:      "forged",
	}
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
}

// expectNoWrites reconciles for some hours in which nothing may be written, not even during deletion.
func expectNoWrites(t *testing.T, w *controllertest.Env, name string) {
	t.Helper()
	writes := w.Writes()
	for range 2 {
		w.Restart(t, events.NewFakeRecorder(1000))
		for i := range 8 {
			reconcileAt(w, time.Duration(i+1)*machine.InventoryEvery, name)
		}
	}
	m := w.VCDMachine(name)
	w.Expect(w.Writes()).To(Equal(writes))
	w.Expect(conditions.IsFalse(m, infrav1.VMInSyncCondition)).To(BeTrue())
	w.Expect(conditions.GetReason(m, infrav1.VMInSyncCondition)).To(Equal(infrav1.MarkerNotFoundReason))

	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())
	w.EventuallyMachine(name, infrav1.VMDeletedCondition, infrav1.VMNotOwnedReason)
	w.Expect(w.Writes()).To(Equal(writes))
}

func TestTheLeaseOfAForeignVAppIsNotChanged(t *testing.T) {
	w := newLimitedEnv(t, 30*day, "a")
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VApp(controllertest.ClusterName).Description = "mine" })
	writes := w.Writes()

	after(w, 29*day, "a")

	m := w.VCDMachine("a")
	w.Expect(conditions.GetMessage(m, infrav1.LeaseLimitedCondition)).To(ContainSubstring("vApp c1 has no ownership marker of this cluster"))
	w.Expect(w.Writes()).To(Equal(writes))
	w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
}

func TestARestoredMarkerIsNoticedAtTheNextInventory(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"of a running VM": true, "of a VM that is powered off": false} {
		t.Run(name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("a")...)
			makeIdle(w, "a")
			var marker string
			w.Sim.Edit(func(e *vcdsim.Editor) {
				marker = e.VM("a").Description
				e.VM("a").Description = "mine"
			})
			var m *infrav1.VCDMachine
			at := time.Duration(0)
			for ; m == nil || conditions.GetReason(m, infrav1.VMInSyncCondition) != infrav1.MarkerNotFoundReason; at += w.Next {
				w.Expect(at).To(BeNumerically("<", 7*time.Hour))
				m = reconcileAt(w, at, "a")
			}
			if !running {
				w.Sim.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM("a")) })
				m = reconcileAt(w, at, "a")
			}

			w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("a").Description = marker })
			for end := at + machine.InventoryEvery; at <= end; at += w.Next {
				m = reconcileAt(w, at, "a")
			}

			w.Expect(conditions.IsTrue(m, infrav1.VMInSyncCondition)).To(BeTrue())
			w.Expect(conditions.IsTrue(m, infrav1.PoweredOnCondition)).To(Equal(running))
		})
	}
}
