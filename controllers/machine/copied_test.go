// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// copies are the ways in which a VCDMachine can claim the VM of machine a. Each returns the key of the copy and the
// reason why it waits.
var copies = []struct {
	name   string
	create func(*controllertest.Env) client.ObjectKey
	reason string
}{
	{"with another name in its namespace", copyMachine, infrav1.VMNotOwnedReason},
	{"with its cluster in another namespace", copyNamespace, infrav1.InfraIDInUseReason},
}

// originals are the possible states of the original.
var originals = []struct {
	name string
	edit func(*controllertest.Env)
}{
	{"was created here", func(*controllertest.Env) {}},
	{"was moved here and became ready", moveHere},
	{
		"was just moved here",
		func(w *controllertest.Env) {
			moveHere(w)
			dropStatus(w)
		},
	},
}

func TestNothingIsWrittenToTheVMOfAnotherVCDMachine(t *testing.T) {
	t.Parallel()
	for _, original := range originals {
		for _, tt := range copies {
			t.Run("the original "+original.name+", its copy is created "+tt.name, func(t *testing.T) {
				w := controllertest.New(t, controllertest.NewMachine("a")...)
				w.Ready("a")
				original.edit(w)
				copied := tt.create(w)
				w.Restart(t, events.NewFakeRecorder(1000))
				w.Sim.Edit(func(e *vcdsim.Editor) {
					e.PowerOff(e.VM("a"))
					e.VM("a").ExtraConfig[guestinfo.KeyUserdata] = "left"
				})
				writes := w.Writes()

				for range 10 {
					reconcileKey(w, copied)
				}

				m := &infrav1.VCDMachine{}
				w.Expect(w.Client.Get(w.Ctx, copied, m)).To(Succeed())
				w.Expect(conditions.GetReason(m, infrav1.PlacementReadyCondition)).To(Equal(tt.reason))
				w.Expect(conditions.GetMessage(m, infrav1.PlacementReadyCondition)).To(ContainSubstring("without"))
				w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())
				w.Eventually(func(g Gomega) {
					reconcileKey(w, copied)
					g.Expect(apierrors.IsNotFound(w.Client.Get(w.Ctx, copied, m))).To(BeTrue())
				}, controllertest.Patience, "5ms").Should(Succeed())
				w.Expect(w.Writes()).To(Equal(writes))

				w.DeleteMachine("a")
				w.Expect(w.Sim.State().VMs).To(BeEmpty(), "the VM belongs to the original")
			})
		}
	}
}

// TestACopyAdoptsTheVMOnceTheOriginalIsGone removes the original but not its VM, as a user does who removes the
// finalizer.
func TestACopyAdoptsTheVMOnceTheOriginalIsGone(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("a")...)
	w.Ready("a")
	copied := copyMachine(w)
	w.Restart(t, events.NewFakeRecorder(1000))
	reconcileKey(w, copied)
	original := w.VCDMachine("a")
	original.Finalizers = nil
	w.Expect(w.Client.Update(w.Ctx, original)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, original)).To(Succeed())

	w.EventuallyMachine(copied.Name, clusterv1.ReadyCondition, infrav1.ReadyReason)
}

// reconcileKey reconciles a VCDMachine.
func reconcileKey(w *controllertest.Env, key client.ObjectKey) {
	_, err := reconcile.AsReconciler(w.Client, w.Machine).Reconcile(w.Ctx, ctrl.Request{NamespacedName: key})
	w.Expect(err).NotTo(HaveOccurred())
}

// moveHere turns machine a into one that was created in another management cluster: its instance ID is not its UID.
func moveHere(w *controllertest.Env) {
	const elsewhere = "11111111-2222-3333-4444-555555555555"
	m := w.VCDMachine("a")
	m.Spec.RecordedState.InstanceID = elsewhere
	m.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	infraID := w.VCDCluster().Spec.InfraID
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.VM("a").Description = "cluster-api-provider-vcd cluster=" + infraID + " machine=" + elsewhere
	})
}

func dropStatus(w *controllertest.Env) {
	m := w.VCDMachine("a")
	m.Status = infrav1.VCDMachineStatus{}
	w.Expect(w.Client.Status().Update(w.Ctx, m)).To(Succeed())
}

// copyMachine copies machine a to another name. Users write the spec of an object, not its status.
func copyMachine(w *controllertest.Env) client.ObjectKey {
	return copyMachineTo(w, client.ObjectKey{Namespace: controllertest.Namespace, Name: "copy"})
}

func copyMachineTo(w *controllertest.Env, key client.ObjectKey) client.ObjectKey {
	from := w.VCDMachine("a")
	from.Spec.PowerOffPolicy = infrav1.PowerOffPowerOn
	from.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
	from.Spec.VMMetadata = entries(map[string]string{"owner": "copy"})
	objects := controllertest.NewMachine(key.Name, func(m *infrav1.VCDMachine) {
		m.Spec = from.Spec
		m.CreationTimestamp = metav1.Now()
	})
	for _, o := range objects {
		o.SetNamespace(key.Namespace)
		w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
	}
	m := &clusterv1.Machine{}
	w.Expect(w.Client.Get(w.Ctx, key, m)).To(Succeed())
	m.Status.NodeRef = clusterv1.MachineNodeReference{Name: key.Name}
	w.Expect(w.Client.Status().Update(w.Ctx, m)).To(Succeed())
	return key
}

// copyNamespace copies the cluster and machine a to another namespace, as a user does with an export.
func copyNamespace(w *controllertest.Env) client.ObjectKey {
	const namespace = "copy"
	from := w.VCDCluster()
	infra := controllertest.NewVCDCluster(w.Sim)
	infra.Spec = from.Spec
	infra.Annotations = from.Annotations
	infra.UID = apitypes.UID("uid-of-the-copy-of-vc1")
	infra.CreationTimestamp = metav1.Now()
	cluster := controllertest.NewCAPICluster()
	cluster.UID = "uid-of-the-copy-of-the-cluster"
	for _, o := range []client.Object{
		controllertest.NewIdentity(w.Sim.URL()),
		controllertest.NewSecret(w.Sim),
		cluster,
		infra,
	} {
		o.SetNamespace(namespace)
		w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
	}
	return copyMachineTo(w, client.ObjectKey{Namespace: namespace, Name: "a-copy"})
}
