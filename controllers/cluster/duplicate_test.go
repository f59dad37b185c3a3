// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

// copied adds a copy of an object's manifest with another cluster name.
func copied[T client.Object](w *controllertest.Env, from, to T, name string) T {
	to.SetName(name)
	to.SetNamespace(from.GetNamespace())
	to.SetUID(apitypes.UID("uid-of-copy-" + name))
	to.SetAnnotations(from.GetAnnotations())
	to.SetFinalizers(from.GetFinalizers())
	to.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "copy"})
	w.Expect(w.Client.Create(w.Ctx, to)).To(Succeed())
	return to
}

// copyCluster copies the cluster with its machine. VCD has a disk of the original.
func copyCluster(w *controllertest.Env) *infrav1.VCDCluster {
	cluster := controllertest.NewCAPICluster()
	cluster.Spec.InfrastructureRef.Name = "copy"
	copied(w, controllertest.NewCAPICluster(), cluster, "copy")
	c := &infrav1.VCDCluster{Spec: w.VCDCluster().Spec}
	c.Spec.OrphanedDiskPolicy = infrav1.OrphanedDiskDelete
	c.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Cluster",
		Name:       "copy",
		UID:        cluster.UID,
	}}
	copied(w, w.VCDCluster(), c, "copy")
	m := &infrav1.VCDMachine{Spec: w.VCDMachine("a").Spec}
	copied(w, w.VCDMachine("a"), m, "copy-a")
	return c
}

func TestCopyOfAClusterDoesNotTakeOverTheOriginal(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a")...)
	c := w.VCDCluster()
	c.UID = infraUUID
	c.Spec.InfraID = infraUUID
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Ready("a")
	vdc := w.Sim.State().VApps[0].VDCID
	w.Driver().Post("/api/vdc/"+vdc+"/disk",
		`<DiskCreateParams `+controllertest.VCloud+`><Disk name="data" sizeMb="1024"><Description>`+infraUUID+
			`</Description></Disk></DiskCreateParams>`)
	twin := copyCluster(w)

	w.Eventually(func(g Gomega) {
		w.ReconcileNamed(g, twin)
		g.Expect(conditions.GetReason(twin, infrav1.IdentityReadyCondition)).To(Equal(infrav1.InfraIDInUseReason))
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.Expect(conditions.GetMessage(twin, clusterv1.ReadyCondition)).To(ContainSubstring("VCDCluster vc1"))
	w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeTrue())
	before := w.Writes()
	w.DeleteMachine("copy-a")
	w.Expect(w.Client.Delete(w.Ctx, twin)).To(Succeed())
	eventuallyGone(w, twin)

	w.Expect(w.Writes()).To(Equal(before))
	w.Expect(w.Sim.State().Disks).To(HaveLen(1))
	w.Expect(w.Sim.State().VMs[0].PoweredOn).To(BeTrue())
	events := strings.Join(w.EventTexts(), "\n")
	w.Expect(events).To(And(ContainSubstring("VMNotOwned"), ContainSubstring("SharedResourcesRetained")))

	w.DeleteMachine("a")
	w.DeleteCluster()
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

// TestCopyDoesNotTakeOverAnOriginalWithoutStatus deletes the copy of a cluster that was just moved here.
func TestCopyDoesNotTakeOverAnOriginalWithoutStatus(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskDelete)
	dropStatus(t, w)
	twin := &infrav1.VCDCluster{Spec: w.VCDCluster().Spec}
	copied(w, w.VCDCluster(), twin, "copy")
	before := w.Writes()

	w.Expect(w.Client.Delete(w.Ctx, twin)).To(Succeed())
	eventuallyGone(w, twin)

	w.Expect(w.Writes()).To(Equal(before))
	w.Expect(strings.Join(w.EventTexts(), "\n")).To(ContainSubstring("SharedResourcesRetained"))
}

// TestOfTwoClustersWithoutStatusTheOlderWins restores a cluster and its copy.
func TestOfTwoClustersWithoutStatusTheOlderWins(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskRetain)
	dropStatus(t, w)
	twin := &infrav1.VCDCluster{Spec: w.VCDCluster().Spec}
	twin.OwnerReferences = w.VCDCluster().OwnerReferences
	twin.CreationTimestamp = metav1.NewTime(w.VCDCluster().CreationTimestamp.Add(time.Hour))
	copied(w, w.VCDCluster(), twin, "copy")

	w.Eventually(func(g Gomega) {
		w.ReconcileNamed(g, twin)
		g.Expect(conditions.GetReason(twin, infrav1.IdentityReadyCondition)).To(Equal(infrav1.InfraIDInUseReason))
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

// TestACopyYieldsToTheRunningCluster has two copies. The older copy yields as well.
func TestACopyYieldsToTheRunningCluster(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskRetain)
	original := w.VCDCluster()
	further := &infrav1.VCDCluster{Spec: original.Spec}
	further.CreationTimestamp = metav1.NewTime(original.CreationTimestamp.Add(2 * time.Hour))
	copied(w, original, further, "a-further-copy") // listed first
	twin := &infrav1.VCDCluster{Spec: original.Spec}
	twin.OwnerReferences = original.OwnerReferences
	twin.CreationTimestamp = metav1.NewTime(original.CreationTimestamp.Add(time.Hour))
	copied(w, original, twin, "copy")

	w.Eventually(func(g Gomega) {
		w.ReconcileNamed(g, twin)
		g.Expect(conditions.GetReason(twin, infrav1.IdentityReadyCondition)).To(Equal(infrav1.InfraIDInUseReason))
	}, controllertest.Patience, "5ms").Should(Succeed())
}

func TestMachineThatOnlyReferencesAVMDoesNotOwnIt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*infrav1.VCDMachine)
	}{
		{"a copy that never owned the VM", func(*infrav1.VCDMachine) {}},
		{
			"a machine at another site, which uses the same URN",
			func(m *infrav1.VCDMachine) {
				m.Spec.RecordedState.InstanceID = "another"
				m.Status.Initialization.Provisioned = ptr.To(true)
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.Machines("a")...)
			w.Ready("a")
			m := copied(w, w.VCDMachine("a"), &infrav1.VCDMachine{Spec: w.VCDMachine("a").Spec}, "claims-a")
			tt.edit(m)
			status := m.Status
			w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
			m.Status = status
			w.Expect(w.Client.Status().Update(w.Ctx, m)).To(Succeed())

			w.DeleteMachine("a")

			w.Expect(w.Sim.State().VMs).To(BeEmpty())
		})
	}
}
