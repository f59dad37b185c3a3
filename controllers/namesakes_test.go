package controllers

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// copied adds what somebody makes of an object by a copy of its manifest under the name of another cluster.
func copied[T client.Object](w *world, from, to T, name string) T {
	to.SetName(name)
	to.SetNamespace(from.GetNamespace())
	to.SetUID(apitypes.UID("uid-of-copy-" + name))
	to.SetAnnotations(from.GetAnnotations())
	to.SetFinalizers(from.GetFinalizers())
	to.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "copy"})
	w.Expect(w.client.Create(w.ctx, to)).To(Succeed())
	return to
}

// copyCluster copies the cluster with its machine, and a disk of its own is in VCD.
func copyCluster(w *world) *infrav1.VCDCluster {
	cluster := testCAPICluster()
	cluster.Spec.InfrastructureRef.Name = "copy"
	copied(w, testCAPICluster(), cluster, "copy")
	c := &infrav1.VCDCluster{Spec: w.vcdCluster().Spec}
	c.Spec.OrphanedDiskPolicy = infrav1.OrphanedDiskDelete
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "copy", UID: cluster.UID}}
	copied(w, w.vcdCluster(), c, "copy")
	m := &infrav1.VCDMachine{Spec: w.vcdMachine("a").Spec}
	copied(w, w.vcdMachine("a"), m, "copy-a")
	return c
}

func TestCopyOfAClusterTakesNothingFromTheOriginal(t *testing.T) {
	w := newWorld(t, machines("a")...)
	c := w.vcdCluster()
	c.UID, c.Spec.InfraID = infraUUID, infraUUID
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.ready("a")
	vdc := w.sim.State().VApps[0].VDCID
	w.person().post("/api/vdc/"+vdc+"/disk", `<DiskCreateParams `+vcloud+`><Disk name="data" sizeMb="1024"><Description>`+infraUUID+`</Description></Disk></DiskCreateParams>`)
	twin := copyCluster(w)

	w.Eventually(func(g Gomega) {
		w.reconcileNamed(g, twin)
		g.Expect(conditions.GetReason(twin, infrav1.IdentityReadyCondition)).To(Equal(infrav1.InfraIDInUseReason))
	}, patience, "5ms").Should(Succeed())
	w.Expect(conditions.GetMessage(twin, clusterv1.ReadyCondition)).To(ContainSubstring("VCDCluster vc1"))
	w.Expect(conditions.IsTrue(w.vcdCluster(), clusterv1.ReadyCondition)).To(BeTrue())
	before := w.writes()
	w.deleteMachine("copy-a")
	w.Expect(w.client.Delete(w.ctx, twin)).To(Succeed())
	w.eventuallyGone(twin)

	w.Expect(w.writes()).To(Equal(before))
	w.Expect(w.sim.State().Disks).To(HaveLen(1))
	w.Expect(w.sim.State().VMs[0].PoweredOn).To(BeTrue())
	events := strings.Join(w.eventTexts(), "\n")
	w.Expect(events).To(And(ContainSubstring("VMLeft"), ContainSubstring("LeftToNamesake")))

	w.deleteMachine("a")
	w.deleteCluster()
	w.Expect(w.sim.State().VApps).To(BeEmpty())
}

func TestMachineThatOnlyNamesAVMDoesNotKeepIt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*infrav1.VCDMachine)
	}{
		{"a copy that was never found to be the VM's own", func(*infrav1.VCDMachine) {}},
		{"a machine at another site, which uses the same URN", func(m *infrav1.VCDMachine) {
			m.Annotations = map[string]string{infrav1.InstanceIDAnnotation: "another"}
			m.Status.Initialization.Provisioned = ptr.To(true)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, machines("a")...)
			w.ready("a")
			m := copied(w, w.vcdMachine("a"), &infrav1.VCDMachine{Spec: w.vcdMachine("a").Spec}, "claims-a")
			tt.edit(m)
			status := m.Status
			w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
			m.Status = status
			w.Expect(w.client.Status().Update(w.ctx, m)).To(Succeed())

			w.deleteMachine("a")

			w.Expect(w.sim.State().VMs).To(BeEmpty())
		})
	}
}
