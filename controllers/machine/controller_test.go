// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMachineIsCreatedAndDeleted(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

	m := w.VCDMachine("cp-0")
	w.Expect(ptr.Deref(m.Status.Initialization.Provisioned, false)).To(BeTrue())
	state := w.Sim.State()
	w.Expect(state.VMs).To(HaveLen(1))
	vm := state.VMs[0]
	w.Expect(m.Spec.ProviderID).To(Equal("vmware-cloud-director://urn:vcloud:vm:" + vm.ID))
	w.Expect(vm.PoweredOn).To(BeTrue())
	w.Expect(vm.VAppName).To(Equal(controllertest.ClusterName))
	w.Expect(vm.Description).To(ContainSubstring("cluster=uid-of-vc1 machine=uid-of-cp-0"))
	w.Expect(vm.ExtraConfig).To(HaveKey("guestinfo.metadata"))
	w.Expect(m.Status.Addresses).To(ContainElements(
		clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: "cp-0"},
		clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "192.168.100.10"},
	))
	for _, condition := range machine.ConditionsOf(m) {
		w.Expect(conditions.IsTrue(m, condition)).To(BeTrue(), condition)
	}
	w.ExpectSettled("cp-0")
	w.Expect(w.Sim.Unhandled()).To(BeEmpty())

	w.DeleteMachine("cp-0")
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
	w.DeleteCluster()
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
	w.Expect(strings.Join(w.EventTexts(), "\n")).NotTo(Or(ContainSubstring(controllertest.Canary),
		ContainSubstring("Warning")))
}

func TestWaitingMachinesAreCreatedTogether(t *testing.T) {
	names := []string{"a", "b", "c"}
	var objects []client.Object
	for _, name := range names {
		objects = append(objects, controllertest.NewMachine(name)...)
	}
	w := controllertest.NewOn(t, vcdsim.Profile{Name: "test", Scale: 0.01}, objects...)
	w.Machine.Gather = 2 * time.Second
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	var group sync.WaitGroup
	for _, name := range names {
		group.Go(func() { w.EventuallyMachine(name, clusterv1.ReadyCondition, infrav1.ReadyReason) })
	}
	group.Wait()

	w.Expect(w.Sim.State().VMs).To(HaveLen(3))
	w.Expect(w.Sim.State().VApps).To(HaveLen(1))
	w.Expect(w.Sim.Counters()["POST /api/vdc/action/composeVApp"]).To(Equal(1))
	w.Expect(w.Sim.Counters()).NotTo(HaveKey("POST /api/vApp/vapp/action/recomposeVApp"))
	for _, name := range names {
		w.ExpectSettled(name)
		w.DeleteMachine(name)
	}
	w.DeleteCluster()
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

func TestMachineReportsProblemsAndRecovers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		change    func(*infrav1.VCDMachine)
		condition string
		reason    string
		field     string
	}{
		{
			name:      "an unknown catalog",
			change:    func(m *infrav1.VCDMachine) { m.Spec.Catalog = "nope" },
			condition: infrav1.PlacementReadyCondition,
			reason:    infrav1.CatalogNotFoundReason,
			field:     "spec.catalog",
		},
		{
			name:      "an unknown template",
			change:    func(m *infrav1.VCDMachine) { m.Spec.Template = "nope" },
			condition: infrav1.PlacementReadyCondition,
			reason:    infrav1.TemplateNotFoundReason,
			field:     "spec.template",
		},
		{
			name:      "a template without a VM",
			change:    func(m *infrav1.VCDMachine) { m.Spec.Template = "no-vm" },
			condition: infrav1.PlacementReadyCondition,
			reason:    infrav1.TemplateInvalidReason,
			field:     "spec.template",
		},
		{
			name:      "an unknown sizing policy",
			change:    func(m *infrav1.VCDMachine) { m.Spec.SizingPolicy = "nope" },
			condition: infrav1.PlacementReadyCondition,
			reason:    infrav1.SizingPolicyNotFoundReason,
			field:     "spec.sizingPolicy",
		},
		{
			name:      "an unknown placement policy",
			change:    func(m *infrav1.VCDMachine) { m.Spec.PlacementPolicy = "nope" },
			condition: infrav1.PlacementReadyCondition,
			reason:    infrav1.PlacementPolicyNotFoundReason,
			field:     "spec.placementPolicy",
		},
		{
			name:      "an unknown storage profile",
			change:    func(m *infrav1.VCDMachine) { m.Spec.StorageProfile = "nope" },
			condition: infrav1.PlacementReadyCondition,
			reason:    infrav1.StorageProfileNotFoundReason,
			field:     "spec.storageProfile",
		},
		{
			name:      "an unknown network",
			change:    func(m *infrav1.VCDMachine) { m.Spec.Networks = []infrav1.NetworkSpec{{Name: "nope"}} },
			condition: infrav1.PlacementReadyCondition,
			reason:    infrav1.NetworkNotFoundReason,
			field:     "spec.networks[0].name",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0", tt.change)...)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

			w.EventuallyMachine("cp-0", tt.condition, tt.reason)
			w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), tt.condition)).To(ContainSubstring(tt.field))
			w.Expect(w.EventTexts()).To(ContainElement(And(HavePrefix("Warning "+tt.reason),
				ContainSubstring(tt.field))))
			w.Expect(w.Sim.State().VMs).To(BeEmpty())
			w.Expect(w.Sim.State().VApps).To(BeEmpty())

			m := w.VCDMachine("cp-0")
			m.Spec = infrav1.VCDMachineSpec{Catalog: "kubernetes", Template: "ubuntu-2404-kube-v1.36.3"}
			w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
			w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
		})
	}
}

func TestMachineWithDHCPAndTwoNICs(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
		m.Spec.Networks = []infrav1.NetworkSpec{
			{AddressSource: infrav1.AddressDHCP},
			{Name: "storage", AddressSource: infrav1.AddressStaticPool},
		}
	})...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

	m := w.VCDMachine("cp-0")
	w.Expect(m.Status.NICs).To(HaveLen(2))
	w.Expect(m.Status.NICs[0].Address).To(HavePrefix("192.168.100.15"))
	w.Expect(m.Status.NICs[1].Address).To(Equal("10.20.0.10"))
	w.ExpectSettled("cp-0")
}

func TestVCDMachineWaitsForItsMachine(t *testing.T) {
	objects := controllertest.NewMachine("cp-0",
		func(m *infrav1.VCDMachine) { m.OwnerReferences = []metav1.OwnerReference{} })
	w := controllertest.New(t, objects...)

	_, err := w.ReconcileMachine("cp-0")

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.VCDMachine("cp-0").Finalizers).To(BeEmpty())
}
