// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/secretcache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
)

func TestADeletingMachineIsReconciledWhenItsCredentialsChange(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Identify("tenant")
	w.Ready("a", "b")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
	a := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: controllertest.Namespace, Name: "a"}}

	// Objects that wait for deletion change nothing that would trigger a reconcile: neither the Machine nor the
	// VCDCluster.
	w.Expect(w.Machine.SecretToMachines(w.Ctx, w.Secret("tenant-credentials"))).To(ConsistOf(a))
	w.Expect(w.Machine.IdentityToMachines(w.Ctx, controllertest.NewIdentity(w.Sim.URL()))).To(ConsistOf(a))
	w.Expect(w.Machine.SecretToMachines(w.Ctx, w.Secret("a-bootstrap"))).To(BeEmpty())
	w.Expect(w.Machine.IdentityToMachines(w.Ctx,
		&infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}})).To(BeEmpty())
}

func TestVCDClusterChangesThatReconcileItsMachines(t *testing.T) {
	t.Parallel()
	note := func(key string) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Annotations = map[string]string{key: "x"} }
	}
	ready := func(status metav1.ConditionStatus, reason, message string) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) {
			c.Status.Conditions = []metav1.Condition{{
				Type:    clusterv1.ReadyCondition,
				Status:  status,
				Reason:  reason,
				Message: message,
			}}
		}
	}
	tests := []struct {
		name   string
		change func(*infrav1.VCDCluster)
		wakes  bool
	}{
		{name: "nothing", change: func(*infrav1.VCDCluster) {}},
		{
			name: "changed records, such as the number of vApps",
			change: func(c *infrav1.VCDCluster) {
				c.Generation++
				c.Spec.RecordedState.VAppCount = 2
			},
		},
		{name: "a changed message of a condition", change: ready(metav1.ConditionTrue, infrav1.ReadyReason, "other")},
		{name: "a user acknowledges the missing VMs", change: note(infrav1.GoneAcknowledgedAnnotation), wakes: true},
		{name: "a pause", change: note(clusterv1.PausedAnnotation), wakes: true},
		{name: "a changed spec", change: func(c *infrav1.VCDCluster) { c.Spec.Org = "other" }, wakes: true},
		{
			name:   "VCD becomes unreachable",
			change: ready(metav1.ConditionUnknown, infrav1.CredentialsRejectedReason, ""),
			wakes:  true,
		},
		{
			name: "the VDC",
			change: func(c *infrav1.VCDCluster) {
				c.Status.OVDC = &infrav1.ResourceReference{ID: "urn:other"}
			},
			wakes: true,
		},
		{name: "a deletion", change: func(c *infrav1.VCDCluster) { c.DeletionTimestamp = &metav1.Time{} }, wakes: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			before := &infrav1.VCDCluster{ObjectMeta: controllertest.Meta("vc1")}
			ready(metav1.ConditionTrue, infrav1.ReadyReason, "")(before)
			after := before.DeepCopy()
			tt.change(after)

			wakes := machine.ClusterConcernsMachines().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})

			g.Expect(wakes).To(Equal(tt.wakes))
		})
	}
}

func TestUpdatesThatReconcileAMachine(t *testing.T) {
	t.Parallel()
	ready := func(status metav1.ConditionStatus) func(*infrav1.VCDMachine) {
		return func(m *infrav1.VCDMachine) {
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: status}}
		}
	}
	tests := []struct {
		name    string
		machine func(*infrav1.VCDMachine)
		changed bool
		wakes   bool
	}{
		{name: "a resync of a ready machine", machine: ready(metav1.ConditionTrue)},
		{name: "a change of a ready machine", machine: ready(metav1.ConditionTrue), changed: true, wakes: true},
		{name: "a resync of a machine that is not ready", machine: ready(metav1.ConditionFalse), wakes: true},
		{name: "a resync of a machine without conditions", machine: func(*infrav1.VCDMachine) {}, wakes: true},
		{
			name: "a resync of a machine that is being deleted",
			machine: func(m *infrav1.VCDMachine) {
				ready(metav1.ConditionTrue)(m)
				m.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			},
			wakes: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			before := &infrav1.VCDMachine{ObjectMeta: controllertest.Meta("a")}
			before.ResourceVersion = "1"
			tt.machine(before)
			after := before.DeepCopy()
			if tt.changed {
				after.ResourceVersion = "2"
			}

			wakes := machine.ExceptResyncOfReady().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})

			g.Expect(wakes).To(Equal(tt.wakes))
		})
	}
}

func TestAReadyMachineSchedulesItsNextPass(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("a")...)
	w.Ready("a")

	for i := range 5 {
		reconcileAt(w, time.Duration(i)*machine.InventoryEvery, "a")

		w.Expect(w.Next).To(And(BeNumerically(">", 0), BeNumerically("<=", machine.InventoryEvery+5*time.Second)))
	}
}

// A countingReader counts reads of Secrets.
type countingReader struct {
	client.Reader

	secrets int
}

// Get implements client.Reader.
func (r *countingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Secret); ok {
		r.secrets++
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

func TestReconcilesOfMachinesDoNotReadSecretsAgain(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	reads := &countingReader{Reader: w.Client}
	w.Machine.Live = reads
	w.Machine.Identities.Live = reads
	w.Machine.Identities.Secrets = secretcache.New(reads, w.Client)
	w.Ready("a", "b")
	w.Expect(reads.secrets).To(BeNumerically("<=", 1+2*2),
		"the credentials, and the bootstrap data of each when it is checked and when it is written")
	reads.secrets = 0

	for i := range 10 {
		reconcileAt(w, time.Duration(i)*machine.InventoryEvery, "a")
		reconcileAt(w, time.Duration(i)*machine.InventoryEvery, "b")
	}

	w.Expect(reads.secrets).To(BeZero())
	secret := w.Secret("tenant-credentials")
	secret.Data["password"] = []byte("other")
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
	reconcileAt(w, 10*machine.InventoryEvery, "a")
	reconcileAt(w, 10*machine.InventoryEvery, "b")
	w.Expect(reads.secrets).To(Equal(1), "a change is noticed")
}
