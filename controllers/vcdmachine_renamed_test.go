package controllers

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const readVMOperation = "GET /api/vApp/vm"

// renameBeforeRecorded lets the VM of a machine be created, and renames it before the machine learns of it.
func (w *world) renameBeforeRecorded(t *testing.T, name string) {
	t.Helper()
	before := len(w.sim.State().VMs)
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.sim.State().VMs).To(HaveLen(before + 1))
	}, patience, "5ms").Should(Succeed())
	w.Expect(w.vcdMachine(name).Spec.ProviderID).To(BeEmpty(), "the VM is not recorded yet")
	w.edit(name, func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Name = "Prüfling 7" })
	w.restart(t, events.NewFakeRecorder(100))
}

func TestVMThatWasRenamedBeforeItWasRecordedIsNotDoubled(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.ready("b")
	w.renameBeforeRecorded(t, "a")

	w.ready("a")

	w.Expect(w.sim.State().VMs).To(HaveLen(2))
	w.eventuallyMachine("a", infrav1.VMAsSpecifiedCondition, infrav1.VMRenamedReason)
	m := w.vcdMachine("a")
	w.Expect(m.Status.Addresses).To(ContainElement(clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: "a"}))
	for _, vm := range w.sim.State().VMs {
		if vm.Name == "Prüfling 7" {
			w.Expect(m.Spec.ProviderID).To(HaveSuffix(vm.ID))
			packed, err := base64.StdEncoding.DecodeString(vm.ExtraConfig["guestinfo.metadata"])
			w.Expect(err).NotTo(HaveOccurred())
			reader, err := gzip.NewReader(bytes.NewReader(packed))
			w.Expect(err).NotTo(HaveOccurred())
			metadata, err := io.ReadAll(reader)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(string(metadata)).To(ContainSubstring(`"local-hostname":"a"`), "the guest has the name that its Node is to have")
		}
	}
}

func TestVMThatWasRenamedBeforeItWasRecordedIsDeleted(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.ready("b")
	w.renameBeforeRecorded(t, "a")

	w.deleteMachine("a")

	w.Expect(w.sim.State().VMs).To(HaveLen(1))
	w.Expect(w.sim.State().VMs[0].Name).To(Equal("b"))
}

func TestOfCopiesThatWereRenamedNoneIsTouched(t *testing.T) {
	w := newWorld(t, testMachine("a")...)
	w.ready()
	w.renameBeforeRecorded(t, "a")
	w.addForeign(testCluster, "copy")
	w.edit("copy", func(e *vcdsim.Editor, vm *vcdsim.VM) { vm.Description = e.VM("Prüfling 7").Description })
	writes := w.writes()

	w.eventuallyMachine("a", infrav1.VAppReadyCondition, infrav1.DuplicateMarkerReason)
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("a"))).To(Succeed())
	w.eventuallyMachine("a", infrav1.VMDeletedCondition, infrav1.DuplicateMarkerReason)

	w.Expect(w.writes()).To(Equal(writes))
}

func TestVMThatIsBeingAskedForIsNotLookedFor(t *testing.T) {
	w := newWorld(t, testMachine("a")...)
	w.ready()
	m := w.vcdMachine("a")
	m.Annotations = map[string]string{infrav1.CreationRequestedAnnotation: "now", infrav1.InstanceIDAnnotation: "id-of-a", infrav1.VMNameAnnotation: "a"}
	s := &machineScope{VCDMachineReconciler: w.machine, vcdMachine: m, vcdCluster: w.vcdCluster(), memory: &memory{}}
	w.machine.creations.join(s.line(), creation{key: s.key()})
	turn, ok := w.machine.creations.take(s.line(), creation{key: "b"})
	w.Expect(ok).To(BeTrue())

	out, err := s.observeRenamed(w.ctx) // A call would need a session.

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(out).To(Equal(done))
	turn.end()
	w.Expect(w.machine.creations.creating(s.line(), s.key())).To(BeFalse())
}

func TestVMsOfOthersAreNotReadToFindARenamedOne(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.ready("b")
	w.sim.Faults().Add(vcdsim.Fault{Operation: "POST /api/vApp/vapp/action/recomposeVApp", DropBefore: true})
	w.eventuallyMachine("a", clusterv1.ReadyCondition, infrav1.SiteUnreachableReason)
	w.sim.ResetCounters()
	w.restart(t, events.NewFakeRecorder(100))

	w.eventuallyMachine("a", clusterv1.ReadyCondition, infrav1.SiteUnreachableReason)

	w.Expect(w.sim.Counters()[readVMOperation]).To(BeZero())
}
