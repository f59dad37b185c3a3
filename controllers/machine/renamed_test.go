// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const readVMOperation = "GET /api/vApp/vm"

// renameBeforeRecorded lets the VM of a machine be created, and renames it before the machine records it.
func renameBeforeRecorded(t *testing.T, w *controllertest.Env, name string) {
	t.Helper()
	before := len(w.Sim.State().VMs)
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Sim.State().VMs).To(HaveLen(before + 1))
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.Expect(w.VCDMachine(name).Spec.ProviderID).To(BeEmpty(), "the VM is not recorded yet")
	w.Edit(name, func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Name = "Prüfling 7" })
	w.Restart(t, events.NewFakeRecorder(100))
}

func TestVMRenamedBeforeItWasRecordedIsNotDuplicated(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Ready("b")
	renameBeforeRecorded(t, w, "a")

	w.Ready("a")

	w.Expect(w.Sim.State().VMs).To(HaveLen(2))
	w.EventuallyMachine("a", infrav1.VMInSyncCondition, infrav1.VMRenamedReason)
	m := w.VCDMachine("a")
	w.Expect(m.Status.Addresses).To(ContainElement(clusterv1.MachineAddress{
		Type:    clusterv1.MachineHostName,
		Address: "a",
	}))
	for _, vm := range w.Sim.State().VMs {
		if vm.Name == "Prüfling 7" {
			w.Expect(m.Spec.ProviderID).To(HaveSuffix(vm.ID))
			packed, err := base64.StdEncoding.DecodeString(vm.ExtraConfig["guestinfo.metadata"])
			w.Expect(err).NotTo(HaveOccurred())
			reader, err := gzip.NewReader(bytes.NewReader(packed))
			w.Expect(err).NotTo(HaveOccurred())
			metadata, err := io.ReadAll(reader)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(string(metadata)).To(ContainSubstring(`"local-hostname":"a"`),
				"the guest has the expected name of its Node")
		}
	}
}

func TestVMRenamedBeforeItWasRecordedIsDeleted(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Ready("b")
	renameBeforeRecorded(t, w, "a")

	w.DeleteMachine("a")

	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
	w.Expect(w.Sim.State().VMs[0].Name).To(Equal("b"))
}

func TestRenamedCopiesAreNotTouched(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("a")...)
	w.Ready()
	renameBeforeRecorded(t, w, "a")
	w.AddForeign(controllertest.ClusterName, "copy")
	w.Edit("copy", func(e *vcdsim.Editor, vm *vcdsim.VM) { vm.Description = e.VM("Prüfling 7").Description })
	writes := w.Writes()

	w.EventuallyMachine("a", infrav1.VAppReadyCondition, infrav1.DuplicateMarkerReason)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
	w.EventuallyMachine("a", infrav1.VMDeletedCondition, infrav1.DuplicateMarkerReason)

	w.Expect(w.Writes()).To(Equal(writes))
}

func TestVMWithARequestInFlightIsNotSearched(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("a")...)
	w.Ready()
	m := w.VCDMachine("a")
	m.Spec.RecordedState = infrav1.VCDMachineRecordedState{
		CreationRequestedAt: ptr.To(metav1.Now()),
		InstanceID:          "id-of-a",
		VMName:              "a",
	}
	s := w.Machine.NewScope(m, w.VCDCluster())
	w.Machine.Batches().Join(s.Line(), batch.Member{Key: s.Key()})
	turn, ok := w.Machine.Batches().Begin(s.Line(), batch.Member{Key: "b"}, time.Now())
	w.Expect(ok).To(BeTrue())

	out, err := s.ObserveRenamed(w.Ctx) // A call would need a session.

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(out).To(Equal(phases.Done))
	turn.End()
	w.Expect(w.Machine.Batches().InFlight(s.Line(), s.Key())).To(BeFalse())
}

func TestForeignVMsAreNotReadToFindARenamedVM(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Ready("b")
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST /api/vApp/vapp/action/recomposeVApp", DropBefore: true})
	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.SiteUnreachableReason)
	w.Sim.ResetCounters()
	w.Restart(t, events.NewFakeRecorder(100))

	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.SiteUnreachableReason)

	w.Expect(w.Sim.Counters()[readVMOperation]).To(BeZero())
}
