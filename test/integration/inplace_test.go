// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestMachinesAreUpdatedInPlace checks that Cluster API changes CPUs, memory and disks of control planes and workers in
// place, and replaces machines for other changes. Control planes are restarted, workers allow hot add.
func TestMachinesAreUpdatedInPlace(t *testing.T) {
	t.Parallel()
	l := newTestCluster(t, shared.replica, 2)
	l.controlPlanes = 3
	l.inPlace = true
	l.serveHooks()
	l.provision()
	machines := l.machineUIDs()
	workers := l.name + "-md-0"
	vms := l.State().VMs
	l.Edit(func(e *vcdsim.Editor) {
		for i := range vms {
			if name := vms[i].Name; strings.HasPrefix(name, workers) {
				e.VM(name).CPUHotAdd = true
				e.VM(name).MemoryHotAdd = true
			}
		}
	})

	l.copyTemplate(workers, workers+"-large", func(s *infrav1.VCDMachineSpec) {
		s.CPUs = 4
		s.Memory = ptr.To(resource.MustParse("8Gi"))
	})
	l.useTemplate(l.deployment(), `{"spec":{"template":{"spec":{"infrastructureRef":{"name":%q}}}}}`, workers+"-large")
	l.eventuallySized(workers, 4, 8<<10)
	l.g.Expect(l.machineUIDs()).To(Equal(machines))
	l.g.Expect(l.Counters()).NotTo(HaveKey(shutdownCall), "hardware is added to the running VMs")

	planes := l.name + "-control-plane"
	l.copyTemplate(planes, planes+"-large", func(s *infrav1.VCDMachineSpec) {
		s.CPUs = 4
		s.DiskSize = ptr.To(resource.MustParse("32Gi"))
	})
	l.useTemplate(l.plane(), `{"spec":{"machineTemplate":{"spec":{"infrastructureRef":{"name":%q}}}}}`, planes+"-large")
	l.eventuallySized(planes, 4, 4<<10)
	l.g.Expect(l.machineUIDs()).To(Equal(machines))
	l.g.Expect(l.Counters()).To(HaveKeyWithValue(shutdownCall, 3), "each VM is restarted once")
	restarted := l.State().VMs
	for i := range restarted {
		if vm := &restarted[i]; strings.HasPrefix(vm.Name, planes) {
			l.g.Expect(vm.Disks[0].SizeMiB).To(Equal(int64(32<<10)), vm.Name)
		}
	}

	l.rejectsOtherChanges()
	l.roll(workers+"-other", func(s *infrav1.VCDMachineSpec) { s.StorageProfile = "fast" })
	l.destroy()
}

// shutdownCall is the operation under which the simulator counts shutdowns of guests.
const shutdownCall = "POST /api/vApp/vm/power/action/shutdown"

// serveHooks registers the runtime hooks of the manager with Cluster API, for the namespace of the test.
func (l *testCluster) serveHooks() {
	l.t.Helper()
	config := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: l.name}}
	config.Spec.ClientConfig.URL = shared.Manager.WebhookURL()
	config.Spec.ClientConfig.CABundle = shared.CA()
	config.Spec.NamespaceSelector = &metav1.LabelSelector{
		MatchLabels: map[string]string{corev1.LabelMetadataName: l.namespace},
	}
	l.g.Expect(shared.client.Create(l.t.Context(), config)).To(Succeed())
	l.t.Cleanup(func() {
		l.g.Expect(shared.client.Delete(context.WithoutCancel(l.t.Context()), config)).To(Succeed())
	})
	l.g.Eventually(func(g Gomega) {
		g.Expect(shared.client.Get(l.t.Context(), client.ObjectKeyFromObject(config), config)).To(Succeed())
		g.Expect(config.Status.Handlers).To(HaveLen(3), "%v", config.Status.Conditions)
	}, timeout, "250ms").Should(Succeed())
}

// plane returns the KubeadmControlPlane, with its name only.
func (l *testCluster) plane() *unstructured.Unstructured {
	plane := &unstructured.Unstructured{}
	plane.SetAPIVersion("controlplane.cluster.x-k8s.io/v1beta2")
	plane.SetKind("KubeadmControlPlane")
	plane.SetNamespace(l.namespace)
	plane.SetName(l.name + "-control-plane")
	return plane
}

// useTemplate sets the template in the owner of machines. The patch is a format with the name of the template.
func (l *testCluster) useTemplate(owner client.Object, patch, template string) {
	l.t.Helper()
	l.patch(owner, fmt.Sprintf(patch, template))
}

// eventuallySized waits until the VMs whose names have the prefix run with the given hardware, and all machines are up
// to date.
func (l *testCluster) eventuallySized(prefix string, cpus, memoryMiB int64) {
	l.t.Helper()
	l.g.Eventually(func(g Gomega) {
		vms := l.State().VMs
		for i := range vms {
			if vm := &vms[i]; strings.HasPrefix(vm.Name, prefix) {
				g.Expect([]int64{vm.CPUs, vm.MemoryMiB}).To(Equal([]int64{cpus, memoryMiB}), vm.Name)
				g.Expect(vm.PoweredOn).To(BeTrue(), vm.Name)
			}
		}
		for _, m := range l.machines() {
			g.Expect(m.Annotations).NotTo(HaveKey(clusterv1.UpdateInProgressAnnotation), m.Name)
			g.Expect(conditions.IsTrue(&m, clusterv1.MachineUpToDateCondition)).To(BeTrue(), m.Name)
		}
	}, longTimeout, "250ms").Should(Succeed())
	l.up()
}

// rejectsOtherChanges checks that users cannot change the hardware of a machine.
func (l *testCluster) rejectsOtherChanges() {
	l.t.Helper()
	worker, _ := l.anyWorker()
	m := &infrav1.VCDMachine{ObjectMeta: l.meta(worker.Spec.InfrastructureRef.Name)}
	l.g.Expect(l.get(m)).To(Succeed())
	m.Spec.CPUs = 8
	l.g.Expect(shared.client.Update(l.t.Context(), m)).To(MatchError(ContainSubstring("spec.cpus: Forbidden")))
}
