// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const capvcdID = "NO_RDE_0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"

// makeCAPVCD converts a cluster with ready machines to a CAPVCD cluster: no object in VCD has a marker, the vApp has
// the cluster ID in its metadata, and the Kubernetes objects have only the fields that CAPVCD writes.
func makeCAPVCD(w *controllertest.Env, machines ...string) {
	w.Sim.Edit(func(e *vcdsim.Editor) {
		v := e.VApp(controllertest.ClusterName)
		v.Description = capvcd.VAppDescription(v.Name)
		v.Metadata = map[string]vcdsim.Metadata{
			capvcd.MetadataKey: {Type: "MetadataStringValue", Value: capvcdID},
		}
		for _, name := range machines {
			e.VM(name).Description = capvcd.VMDescription
		}
	})
	c := w.VCDCluster()
	c.Spec.InfraID = capvcdID
	c.Spec.RecordedState.VAppIDs = nil
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	for _, name := range machines {
		m := w.VCDMachine(name)
		m.Spec.RecordedState = infrav1.VCDMachineRecordedState{}
		w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
		m.Status.Conditions = nil
		w.Expect(w.Client.Status().Update(w.Ctx, m)).To(Succeed())
	}
}

func TestACAPVCDMachineIsAdopted(t *testing.T) {
	w := newLimitedEnv(t, 30*day, "a")
	makeCAPVCD(w, "a")
	since := len(w.Sim.Requests())

	w.EventuallyMachine("a", infrav1.AdoptedCondition, infrav1.ReadyReason)
	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.ReadyReason)

	for _, r := range w.Sim.Requests()[since:] {
		w.Expect(r.Changes()).To(BeFalse(), "%s %s", r.Method, r.Path)
	}
	m := w.VCDMachine("a")
	w.Expect(m.Spec.RecordedState).To(And(HaveField("VMName", "a"), HaveField("InstanceID", string(m.UID)),
		HaveField("PoweredOnAt", Not(BeNil()))))
	w.Expect(conditions.Get(m, infrav1.BootstrapDataRemovedCondition)).To(BeNil(), "CAPVCD's fields are kept")
	w.Expect(conditions.IsTrue(m, infrav1.VMInSyncCondition)).To(BeTrue(), "it has no marker to lose")
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("Adopted VM a")))

	w.Sim.ResetCounters()
	after(w, 28*day, "a")
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(leaseCall, 1), "the lease of its vApp is renewed")
}

// TestDeletionOfAnUnrecordedCAPVCDMachineWaitsForAccess deletes a machine whose VM runs, but was never recorded: CAPVCD
// recorded neither the VM, until it had joined the cluster, nor that it requested the VM.
func TestDeletionOfAnUnrecordedCAPVCDMachineWaitsForAccess(t *testing.T) {
	password := func(w *controllertest.Env, password string) {
		secret := w.Secret("tenant-credentials")
		secret.Data["password"] = []byte(password)
		w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
		w.Restart(t, events.NewFakeRecorder(1000))
	}
	tests := map[string]struct {
		lock, unlock func(*controllertest.Env)
	}{
		"VCD rejects the password": {
			lock:   func(w *controllertest.Env) { password(w, "wrong") },
			unlock: func(w *controllertest.Env) { password(w, "password") },
		},
		"the vApp is not visible": {
			lock:   func(w *controllertest.Env) { w.Hide(controllertest.ClusterName, true) },
			unlock: func(w *controllertest.Env) { w.Hide(controllertest.ClusterName, false) },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newLimitedEnv(t, 0, "a")
			makeCAPVCD(w, "a")
			m := w.VCDMachine("a")
			m.Spec.ProviderID = ""
			w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
			tt.lock(w)
			w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())

			for range 10 {
				_, err := w.ReconcileMachine("a")
				w.Expect(err).NotTo(HaveOccurred())
			}

			w.Expect(w.VCDMachine("a").Finalizers).To(ContainElement(infrav1.MachineFinalizer))
			w.Expect(w.Sim.State().VMs).To(HaveLen(1))
			tt.unlock(w)
			w.DeleteMachine("a")
			w.Expect(w.Sim.State().VMs).To(BeEmpty())
		})
	}
}

func TestAnUncertainAdoptionChangesNothing(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*vcdsim.Editor)
		message string
	}{
		{
			name:    "a vApp of another cluster",
			message: "not in a vApp of this cluster",
			change: func(e *vcdsim.Editor) {
				e.VApp(controllertest.ClusterName).Metadata[capvcd.MetadataKey] = vcdsim.Metadata{
					Type:  "MetadataStringValue",
					Value: "NO_RDE_99999999-6b52-4d2a-8f4c-2f1b7a4c5d6e",
				}
			},
		},
		{
			name:    "a VM with another name",
			message: "should have the name a",
			change:  func(e *vcdsim.Editor) { e.VM("a").Name = "b" },
		},
		{
			name:    "a VM with the marker of another machine",
			message: "not in a vApp of this cluster",
			change: func(e *vcdsim.Editor) {
				e.VM("a").Description = "cluster-api-provider-vcd cluster=" + capvcdID + " machine=another"
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newLimitedEnv(t, 0, "a")
			makeCAPVCD(w, "a")
			w.Sim.Edit(tt.change)
			since := len(w.Sim.Requests())

			w.EventuallyMachine("a", infrav1.AdoptedCondition, infrav1.AdoptionUnverifiedReason)

			m := w.VCDMachine("a")
			adopted := conditions.Get(m, infrav1.AdoptedCondition)
			w.Expect(adopted.Status).To(Equal(metav1.ConditionUnknown), "a health check must not delete the node")
			w.Expect(adopted.Message).To(ContainSubstring(tt.message))
			w.Expect(m.Spec.RecordedState.PoweredOnAt).To(BeZero())
			w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())
			w.EventuallyMachine("a", infrav1.VMDeletedCondition, infrav1.VMNotOwnedReason)
			for _, r := range w.Sim.Requests()[since:] {
				w.Expect(r.Changes()).To(BeFalse(), "%s %s", r.Method, r.Path)
			}
		})
	}
}
