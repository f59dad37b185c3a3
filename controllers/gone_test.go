package controllers

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// hide takes the vApp out of the user's sight, or shows it again.
func (w *world) hide(vApp string, hidden bool) {
	w.sim.Edit(func(e *vcdsim.Editor) {
		v := e.VApp(vApp)
		for _, org := range e.Model.Orgs {
			if (org.Name == "acme") != hidden {
				v.OrgID = org.ID
			}
		}
	})
}

// later makes the clocks of all reconcilers go ahead by d.
func (w *world) later(d time.Duration) {
	now := func() time.Time { return time.Now().Add(d) }
	w.machine.Now, w.cluster.Now = now, now
}

// stopAt makes the clock of the reconcilers stand still: where seconds decide, a busy machine must not.
func (w *world) stopAt(t time.Time) {
	now := func() time.Time { return t }
	w.machine.Now, w.cluster.Now = now, now
}

// isGone reconciles a machine a few times and says whether it is gone.
func (w *world) isGone(name string) bool {
	for range 3 {
		_, err := w.reconcileMachine(name)
		w.Expect(err).NotTo(HaveOccurred())
	}
	return w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: name}, &infrav1.VCDMachine{}) != nil
}

// isClusterGone reconciles the cluster a few times and says whether it is gone.
func (w *world) isClusterGone() bool {
	w.Eventually(func(g Gomega) { // Load balancers are removed beside reconciles.
		_, err := w.reconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		c := &infrav1.VCDCluster{}
		if w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "vc1"}, c) == nil {
			g.Expect(conditions.GetReason(c, infrav1.LoadBalancersDeletedCondition)).NotTo(Equal(infrav1.TaskRunningReason))
		}
	}, patience, "5ms").Should(Succeed())
	for range 3 {
		_, err := w.reconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}
	return w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "vc1"}, &infrav1.VCDCluster{}) != nil
}

func (w *world) ready(names ...string) {
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	for _, name := range names {
		w.eventuallyMachine(name, clusterv1.ReadyCondition, infrav1.ReadyReason)
	}
}

func TestVMThatAnotherUserDoesNotSeeIsNotGone(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.ready("cp-0")
	w.hide(testCluster, true)
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("cp-0"))).To(Succeed())

	for _, d := range []time.Duration{0, time.Minute, time.Hour} {
		w.later(d)
		w.Expect(w.isGone("cp-0")).To(BeFalse())
	}

	m := w.vcdMachine("cp-0")
	w.Expect(conditions.GetReason(m, infrav1.VMDeletedCondition)).To(Equal(infrav1.VMUnverifiedReason))
	w.Expect(conditions.IsUnknown(m, clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(conditions.GetMessage(m, infrav1.VMDeletedCondition)).To(ContainSubstring(infrav1.VMGoneAnnotation + "=true"))
	w.hide(testCluster, false)
	w.Eventually(func() bool { return w.isGone("cp-0") }, patience, "5ms").Should(BeTrue())
	w.Expect(w.sim.State().VMs).To(BeEmpty())
}

func TestVMIsGoneOnceAPersonSaysSo(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.ready("cp-0")
	w.hide(testCluster, true)
	m := w.vcdMachine("cp-0")
	m.Annotations[infrav1.VMGoneAnnotation] = "true"
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())

	w.Expect(w.client.Delete(w.ctx, m)).To(Succeed())

	w.Expect(w.isGone("cp-0")).To(BeTrue())
}

func TestVMThatSomebodyDeletedIsGoneAtTheSecondLook(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*world, *vcdsim.Editor)
	}{
		{"the vApp is seen", func(*world, *vcdsim.Editor) {}},
		{"a VM of the cluster is seen, elsewhere", func(_ *world, e *vcdsim.Editor) { e.VApp(testCluster).Name = "renamed" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
			w.ready("a", "b")
			w.sim.Edit(func(e *vcdsim.Editor) {
				e.DeleteVM(e.VM("a"))
				tt.edit(w, e)
			})
			w.Expect(w.client.Delete(w.ctx, w.vcdMachine("a"))).To(Succeed())
			first := time.Now()

			w.stopAt(first)
			w.Expect(w.isGone("a")).To(BeFalse())
			w.Expect(w.vcdMachine("a").Annotations).To(HaveKey(infrav1.MissingSinceAnnotation))
			w.stopAt(first.Add(proofInterval - time.Second))
			w.Expect(w.isGone("a")).To(BeFalse())
			w.stopAt(first.Add(proofInterval))
			w.Expect(w.isGone("a")).To(BeTrue())
			w.Expect(w.eventTexts()).To(ContainElement(ContainSubstring("VMDeleted")))
		})
	}
}

func TestVMThatIsSeenAgainIsNotMissing(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.ready("cp-0")
	m := w.vcdMachine("cp-0")
	m.Annotations[infrav1.MissingSinceAnnotation] = "2020-01-01T00:00:00Z"
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, m)).To(Succeed())

	_, err := w.reconcileMachine("cp-0")

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.vcdMachine("cp-0").Annotations).NotTo(HaveKey(infrav1.MissingSinceAnnotation))
}

func TestMachineWhoseCreationMayStillComeIsLookedForTwice(t *testing.T) {
	t.Parallel()
	for _, layout := range []infrav1.VAppLayout{infrav1.VAppPerCluster, infrav1.VAppPerMachine} {
		t.Run(string(layout), func(t *testing.T) {
			w := newWorld(t, testMachine("cp-0", func(m *infrav1.VCDMachine) {
				m.Finalizers = []string{infrav1.MachineFinalizer}
				m.Annotations = map[string]string{
					infrav1.InstanceIDAnnotation: "id", infrav1.VMNameAnnotation: "cp-0", infrav1.CreationRequestedAnnotation: time.Now().UTC().Format(time.RFC3339),
				}
			})...)
			c := w.vcdCluster()
			c.Spec.VApp.Layout = layout
			w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
			w.ready()
			w.Expect(w.client.Delete(w.ctx, w.vcdMachine("cp-0"))).To(Succeed())

			w.Expect(w.isGone("cp-0")).To(BeFalse())
			w.later(62 * time.Second)
			w.Expect(w.isGone("cp-0")).To(BeTrue())
		})
	}
}

func TestManagerKilledWhileVCDDeletesKnowsThatTheVMIsGone(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.ready("a", "b")
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("a"))).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine("a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.sim.State().VMs).To(HaveLen(1))
	}, patience, "5ms").Should(Succeed())

	w.restart(t, events.NewFakeRecorder(100))

	w.Expect(w.isGone("a")).To(BeTrue())
}

func TestVAppThatIsNotSeenIsGoneAtTheSecondLook(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.ready("cp-0")
	w.deleteMachine("cp-0")
	w.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp(testCluster)) })
	w.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=orgVdc", Status: http.StatusForbidden, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN"})
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.ReadyReason)

	for _, d := range []time.Duration{0, time.Hour} { // The VDC is not seen either.
		w.later(d)
		w.Expect(w.isClusterGone()).To(BeFalse())
		w.Expect(conditions.GetReason(w.vcdCluster(), infrav1.VAppDeletedCondition)).To(Equal(infrav1.VAppUnverifiedReason))
	}
	w.sim.Faults().Clear()
	w.Expect(w.isClusterGone()).To(BeFalse())
	w.later(time.Hour + 62*time.Second)
	w.Expect(w.isClusterGone()).To(BeTrue())
}

func TestForeignKubeVIPSecretIsLeftAlone(t *testing.T) {
	foreign := &corev1.Secret{ObjectMeta: meta("c1-kube-vip"), Data: map[string][]byte{"mine": []byte("!")}}
	w := newWorld(t, foreign)

	w.eventuallyCluster(infrav1.EndpointReadyCondition, infrav1.NameConflictReason)

	secret := &corev1.Secret{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(foreign), secret)).To(Succeed())
	w.Expect(secret.Data).To(Equal(foreign.Data))
	w.Expect(secret.OwnerReferences).To(BeEmpty())
	w.Expect(w.client.Delete(w.ctx, secret)).To(Succeed())
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestKubeVIPSecretIsTakenBack(t *testing.T) {
	w := newWorld(t)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	secret := &corev1.Secret{ObjectMeta: meta("c1-kube-vip")}
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	written := secret.DeepCopy()
	secret.OwnerReferences, secret.Data = nil, map[string][]byte{"broken": nil} // As after a restore from a backup.
	w.Expect(w.client.Update(w.ctx, secret)).To(Succeed())

	_, err := w.reconcileCluster()

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	w.Expect(secret.Data).To(Equal(written.Data))
	w.Expect(metav1.IsControlledBy(secret, w.vcdCluster())).To(BeTrue())
}

func TestForeignAddressClaimIsLookedAtAgain(t *testing.T) {
	w := newWorld(t, &ipamv1.IPAddressClaim{ObjectMeta: meta("c1-vip")})
	c := w.vcdCluster()
	c.Spec.Endpoint.KubeVIP = &infrav1.KubeVIPEndpoint{PoolRef: &infrav1.IPPoolReference{Name: "vips", Kind: "InClusterIPPool", APIGroup: "ipam.cluster.x-k8s.io"}}
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())

	w.eventuallyCluster(infrav1.EndpointReadyCondition, infrav1.NameConflictReason)

	result, err := w.reconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
}

func TestManagerKilledWhileVCDDeletesTheVAppOfAMachine(t *testing.T) {
	w := newWorld(t, testMachine("md-0")...)
	c := w.vcdCluster()
	c.Spec.VApp.Layout = infrav1.VAppPerMachine
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.ready("md-0")
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("md-0"))).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.sim.State().VApps).To(BeEmpty())
	}, patience, "5ms").Should(Succeed())

	w.restart(t, events.NewFakeRecorder(100))

	w.Expect(w.isGone("md-0")).To(BeFalse())
	w.Expect(w.vcdMachine("md-0").Annotations).To(HaveKeyWithValue(infrav1.VMGoneAnnotation, "true"))
	w.later(62 * time.Second)
	w.Expect(w.isGone("md-0")).To(BeTrue())
}
