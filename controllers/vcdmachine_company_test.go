package controllers

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// otherCluster returns the objects of a second cluster that wants the same vApp, and a machine of it.
func otherCluster(sim *vcdsim.Simulator, machine string) []client.Object {
	cluster := testCAPICluster()
	cluster.Name, cluster.UID, cluster.Labels = "c2", "uid-of-c2", ofCluster("c2")
	cluster.Spec.InfrastructureRef.Name = "vc2"
	infra := testVCDCluster(sim)
	infra.Name, infra.UID, infra.Labels = "vc2", "uid-of-vc2", ofCluster("c2")
	infra.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c2", UID: "uid-of-c2"}}
	infra.Spec.InfraID = "id-of-c2"
	infra.Spec.VApp.Name = testCluster
	objects := append(testMachine(machine), cluster, infra)
	for _, o := range objects[:2] {
		o.SetLabels(ofCluster("c2"))
	}
	return objects
}

func TestMachinesOfTwoClustersAreNotCreatedTogether(t *testing.T) {
	w := newWorldOn(t, vcdsim.Profile{Name: "test", Scale: 0.01}, testMachine("a")...)
	for _, o := range otherCluster(w.sim, "b") {
		w.Expect(w.client.Create(w.ctx, o)).To(Succeed())
	}
	w.machine.Gather = 2 * time.Second
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	var group sync.WaitGroup
	for range 2 {
		for _, name := range []string{"a", "b"} {
			group.Go(func() { _, _ = w.reconcileMachine(name) })
		}
	}
	group.Wait()
	w.Eventually(func(g Gomega) {
		reasons := map[string]bool{}
		for _, name := range []string{"a", "b"} {
			_, err := w.reconcileMachine(name)
			g.Expect(err).NotTo(HaveOccurred())
			reasons[conditions.GetReason(w.vcdMachine(name), clusterv1.ReadyCondition)] = true
		}
		g.Expect(reasons).To(And(HaveKey(infrav1.ReadyReason), HaveKey(infrav1.NameConflictReason)))
	}, patience, "5ms").Should(Succeed())

	state := w.sim.State()
	w.Expect(state.VMs).To(HaveLen(1))
	vApp, _ := vcd.ParseMarker(state.VApps[0].Description)
	vm, _ := vcd.ParseMarker(state.VMs[0].Description)
	w.Expect(vm.Cluster).To(Equal(vApp.Cluster))
}

func TestOnlyMachinesOfTheClusterShareARequest(t *testing.T) {
	w := newWorld(t, testMachine("a")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.vcdMachine("a")
	s := &machineScope{VCDMachineReconciler: w.machine, vcdMachine: m, vcdCluster: w.vcdCluster(), memory: &memory{}, placement: placement{networks: make([]vcd.Network, 1)}}
	m.Annotations = map[string]string{infrav1.InstanceIDAnnotation: "id-of-a", infrav1.VMNameAnnotation: "a"}
	mine, other := s.creation(), s.creation()
	other.key, other.spec.Description = "other", vcd.Marker{Cluster: "another", Machine: "x"}.String()
	s.turn = turn{vms: []creation{mine, other}}

	company, err := s.company(w.ctx, func(creation) bool { return true })

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(company).To(HaveLen(1))
	w.Expect(company[0].key).To(Equal(s.key()))
}

func TestMachineThatIsBeingDeletedIsNotCreatedInCompany(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b", func(b *infrav1.VCDMachine) { b.Finalizers = []string{infrav1.MachineFinalizer} })...)...)
	w.ready()
	m := w.vcdMachine("a")
	s := &machineScope{VCDMachineReconciler: w.machine, vcdMachine: m, vcdCluster: w.vcdCluster(), memory: &memory{}, placement: placement{networks: make([]vcd.Network, 1)}}
	m.Annotations = map[string]string{infrav1.InstanceIDAnnotation: "id-of-a", infrav1.VMNameAnnotation: "a"}
	mine, b := s.creation(), s.creation()
	b.key, b.machine.Name, b.spec.Name = string(w.vcdMachine("b").UID), "b", "b"
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("b"))).To(Succeed())
	s.turn = turn{vms: []creation{mine, b}}

	company, err := s.company(w.ctx, func(creation) bool { return true })

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(specs(company)).To(HaveExactElements(HaveField("Name", "a")))
	w.Expect(w.vcdMachine("b").Annotations).NotTo(HaveKey(infrav1.CreationRequestedAnnotation))
}

func TestMachinesOfOneNameDoNotShareARequest(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), append(testMachine("b"), testMachine("c")...)...)...)
	w.ready()
	m := w.vcdMachine("a")
	m.Annotations = map[string]string{infrav1.InstanceIDAnnotation: "id-of-a", infrav1.VMNameAnnotation: "same"}
	s := &machineScope{VCDMachineReconciler: w.machine, vcdMachine: m, vcdCluster: w.vcdCluster(), memory: &memory{}, placement: placement{networks: make([]vcd.Network, 1)}}
	mine, b, c := s.creation(), s.creation(), s.creation()
	b.key, b.machine.Name = string(w.vcdMachine("b").UID), "b"
	c.key, c.machine.Name, c.spec.Name = string(w.vcdMachine("c").UID), "c", "other"
	s.turn = turn{vms: []creation{b, c, mine}}

	company, err := s.company(w.ctx, func(creation) bool { return true })

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(specs(company)).To(HaveExactElements(HaveField("Name", "other"), HaveField("Name", "same")))
	w.Expect(w.vcdMachine("b").Annotations).NotTo(HaveKey(infrav1.CreationRequestedAnnotation))
}

func TestMachineThatWentIsNotCreatedInCompany(t *testing.T) {
	w := newWorld(t, testMachine("a")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.vcdMachine("a")
	s := &machineScope{VCDMachineReconciler: w.machine, vcdMachine: m, vcdCluster: w.vcdCluster(), memory: &memory{}, placement: placement{networks: make([]vcd.Network, 1)}}
	m.Annotations = map[string]string{infrav1.InstanceIDAnnotation: "id-of-a", infrav1.VMNameAnnotation: "a"}
	mine, gone := s.creation(), s.creation()
	gone.key, gone.machine.Name = "gone", "gone"
	s.turn = turn{vms: []creation{gone, mine}}

	company, err := s.company(w.ctx, func(creation) bool { return true })

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(company).To(HaveLen(1))
	w.Expect(company[0].key).To(Equal(s.key()))
}

func TestCreationIsNotedBeforeItIsRequested(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, operation string
		existing        bool
	}{
		{"with a new vApp", "POST /api/vdc/action/composeVApp", false},
		{"in a vApp that exists", "POST /api/vApp/vapp/action/recomposeVApp", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			objects := append(testMachine("a"), testMachine("b")...)
			w := newWorld(t, append(objects, testMachine("first")...)...)
			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			if tt.existing {
				w.eventuallyMachine("first", clusterv1.ReadyCondition, infrav1.ReadyReason)
			}
			w.machine.Gather = 100 * time.Millisecond
			w.sim.Faults().Add(vcdsim.Fault{Operation: tt.operation, DropBefore: true})

			w.eventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.ReadyReason)
			w.eventuallyMachine("b", infrav1.PlacementReadyCondition, infrav1.ReadyReason)
			w.Expect(w.vcdMachine("b").Annotations).NotTo(HaveKey(infrav1.CreationRequestedAnnotation))
			w.eventuallyMachine("a", clusterv1.ReadyCondition, infrav1.SiteUnreachableReason)

			for _, name := range []string{"a", "b"} {
				at, err := time.Parse(time.RFC3339, w.vcdMachine(name).Annotations[infrav1.CreationRequestedAnnotation])
				w.Expect(err).NotTo(HaveOccurred())
				w.Expect(at).To(BeTemporally("~", time.Now(), time.Minute))
			}
		})
	}
}

func TestMarkerThatCannotBeReadBackIsRefused(t *testing.T) {
	w := newWorld(t, testMachine("a")...)
	c := w.vcdCluster()
	c.Spec.InfraID = "my cluster"
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.eventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.InfraIDInvalidReason)

	w.Expect(conditions.GetMessage(w.vcdMachine("a"), infrav1.PlacementReadyCondition)).To(ContainSubstring("spec.infraID"))
	w.Expect(w.writes()).To(BeZero())
}
