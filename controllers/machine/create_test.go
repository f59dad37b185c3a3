// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMachinesOfTwoClustersAreNotCreatedTogether(t *testing.T) {
	w := controllertest.NewOn(t, vcdsim.Profile{Name: "test", Scale: 0.01}, controllertest.NewMachine("a")...)
	for _, o := range controllertest.OtherCluster(w.Sim, "b") {
		w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
	}
	w.Machine.Gather = 2 * time.Second
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	var group sync.WaitGroup
	for range 2 {
		for _, name := range []string{"a", "b"} {
			group.Go(func() { _, _ = w.ReconcileMachine(name) })
		}
	}
	group.Wait()
	w.Eventually(func(g Gomega) {
		reasons := map[string]bool{}
		for _, name := range []string{"a", "b"} {
			_, err := w.ReconcileMachine(name)
			g.Expect(err).NotTo(HaveOccurred())
			reasons[conditions.GetReason(w.VCDMachine(name), clusterv1.ReadyCondition)] = true
		}
		g.Expect(reasons).To(And(HaveKey(infrav1.ReadyReason), HaveKey(infrav1.NameConflictReason)))
	}, controllertest.Patience, "5ms").Should(Succeed())

	state := w.Sim.State()
	w.Expect(state.VMs).To(HaveLen(1))
	vApp, _ := vcd.ParseMarker(state.VApps[0].Description)
	vm, _ := vcd.ParseMarker(state.VMs[0].Description)
	w.Expect(vm.Cluster).To(Equal(vApp.Cluster))
}

func TestOnlyMachinesOfOneClusterShareARequest(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("a")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.VCDMachine("a")
	s := w.Machine.NewScope(m, w.VCDCluster())
	m.Spec.RecordedState = infrav1.VCDMachineRecordedState{InstanceID: "id-of-a", VMName: "a"}
	mine := s.Member()
	other := s.Member()
	other.Key = "other"
	other.Spec.Description = vcd.Marker{Cluster: "another", Machine: "x"}.String()

	company, err := s.Batch(w.Ctx, mine, other)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(company).To(HaveLen(1))
	w.Expect(company[0].Key).To(Equal(s.Key()))
}

func TestDeletingMachineIsNotCreatedInABatch(t *testing.T) {
	w := controllertest.New(t,
		append(controllertest.NewMachine("a"),
			controllertest.NewMachine("b",
				func(b *infrav1.VCDMachine) { b.Finalizers = []string{infrav1.MachineFinalizer} })...)...)
	w.Ready()
	m := w.VCDMachine("a")
	s := w.Machine.NewScope(m, w.VCDCluster())
	m.Spec.RecordedState = infrav1.VCDMachineRecordedState{InstanceID: "id-of-a", VMName: "a"}
	mine := s.Member()
	b := s.Member()
	b.Key = string(w.VCDMachine("b").UID)
	b.Machine.Name = "b"
	b.Spec.Name = "b"
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("b"))).To(Succeed())

	company, err := s.Batch(w.Ctx, mine, b)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(machine.Specs(company)).To(HaveExactElements(HaveField("Name", "a")))
	w.Expect(w.VCDMachine("b").Spec.RecordedState.CreationRequestedAt).To(BeZero())
}

func TestMachinesWithOneNameDoNotShareARequest(t *testing.T) {
	w := controllertest.New(t,
		append(controllertest.NewMachine("a"),
			append(controllertest.NewMachine("b"), controllertest.NewMachine("c")...)...)...)
	w.Ready()
	m := w.VCDMachine("a")
	m.Spec.RecordedState = infrav1.VCDMachineRecordedState{InstanceID: "id-of-a", VMName: "same"}
	s := w.Machine.NewScope(m, w.VCDCluster())
	mine := s.Member()
	b := s.Member()
	c := s.Member()
	b.Key = string(w.VCDMachine("b").UID)
	b.Machine.Name = "b"
	c.Key = string(w.VCDMachine("c").UID)
	c.Machine.Name = "c"
	c.Spec.Name = "other"

	company, err := s.Batch(w.Ctx, b, c, mine)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(machine.Specs(company)).To(HaveExactElements(HaveField("Name", "other"), HaveField("Name", "same")))
	w.Expect(w.VCDMachine("b").Spec.RecordedState.CreationRequestedAt).To(BeZero())
}

func TestDeletedMachineIsNotCreatedInABatch(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("a")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.VCDMachine("a")
	s := w.Machine.NewScope(m, w.VCDCluster())
	m.Spec.RecordedState = infrav1.VCDMachineRecordedState{InstanceID: "id-of-a", VMName: "a"}
	mine := s.Member()
	gone := s.Member()
	gone.Key = "gone"
	gone.Machine.Name = "gone"

	company, err := s.Batch(w.Ctx, gone, mine)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(company).To(HaveLen(1))
	w.Expect(company[0].Key).To(Equal(s.Key()))
}

func TestCreationIsRecordedBeforeItIsRequested(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, operation string
		existing        bool
	}{
		{"with a new vApp", "POST /api/vdc/action/composeVApp", false},
		{"in an existing vApp", "POST /api/vApp/vapp/action/recomposeVApp", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			objects := append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)
			w := controllertest.New(t, append(objects, controllertest.NewMachine("first")...)...)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			if tt.existing {
				w.EventuallyMachine("first", clusterv1.ReadyCondition, infrav1.ReadyReason)
			}
			w.Machine.Gather = 100 * time.Millisecond
			w.Sim.Faults().Add(vcdsim.Fault{Operation: tt.operation, DropBefore: true})

			w.EventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.ReadyReason)
			w.EventuallyMachine("b", infrav1.PlacementReadyCondition, infrav1.ReadyReason)
			w.Expect(w.VCDMachine("b").Spec.RecordedState.CreationRequestedAt).To(BeZero())
			w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.SiteUnreachableReason)

			for _, name := range []string{"a", "b"} {
				w.Expect(w.VCDMachine(name).Spec.RecordedState.CreationRequestedAt.Time).To(BeTemporally("~", time.Now(), time.Minute))
			}
		})
	}
}

func TestMarkerThatCannotBeReadBackIsRejected(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("a")...)
	c := w.VCDCluster()
	c.Spec.InfraID = "my cluster"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.InfraIDInvalidReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("a"),
		infrav1.PlacementReadyCondition)).To(ContainSubstring("spec.infraID"))
	w.Expect(w.Writes()).To(BeZero())
}
