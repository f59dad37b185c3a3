package machine_test

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// hide takes the vApp out of the user's sight, or shows it again.
func hide(w *controllertest.Env, vApp string, hidden bool) {
	w.Sim.Edit(func(e *vcdsim.Editor) {
		v := e.VApp(vApp)
		for _, org := range e.Model.Orgs {
			if (org.Name == "acme") != hidden {
				v.OrgID = org.ID
			}
		}
	})
}

// stopAt makes the clock of the reconcilers stand still: where seconds decide, a busy machine must not.
func stopAt(w *controllertest.Env, t time.Time) {
	now := func() time.Time { return t }
	w.Machine.Now, w.Cluster.Now = now, now
}

// isGone reconciles a machine a few times and says whether it is gone.
func isGone(w *controllertest.Env, name string) bool {
	for range 3 {
		_, err := w.ReconcileMachine(name)
		w.Expect(err).NotTo(HaveOccurred())
	}
	return w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: name}, &infrav1.VCDMachine{}) != nil
}

func TestVMThatAnotherUserDoesNotSeeIsNotGone(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	hide(w, controllertest.ClusterName, true)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())

	for _, d := range []time.Duration{0, time.Minute, time.Hour} {
		w.Later(d)
		w.Expect(isGone(w, "cp-0")).To(BeFalse())
	}

	m := w.VCDMachine("cp-0")
	w.Expect(conditions.GetReason(m, infrav1.VMDeletedCondition)).To(Equal(infrav1.VMUnverifiedReason))
	w.Expect(conditions.IsUnknown(m, clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(conditions.GetMessage(m, infrav1.VMDeletedCondition)).To(ContainSubstring(infrav1.VMGoneAnnotation + "=true"))
	hide(w, controllertest.ClusterName, false)
	w.Eventually(func() bool { return isGone(w, "cp-0") }, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}

func TestVMIsGoneOnceAPersonSaysSo(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	hide(w, controllertest.ClusterName, true)
	m := w.VCDMachine("cp-0")
	m.Annotations[infrav1.VMGoneAnnotation] = "true"
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())

	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())

	w.Expect(isGone(w, "cp-0")).To(BeTrue())
}

func TestVMThatSomebodyDeletedIsGoneAtTheSecondLook(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*controllertest.Env, *vcdsim.Editor)
	}{
		{"the vApp is seen", func(*controllertest.Env, *vcdsim.Editor) {}},
		{"a VM of the cluster is seen, elsewhere", func(_ *controllertest.Env, e *vcdsim.Editor) { e.VApp(controllertest.ClusterName).Name = "renamed" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
			w.Ready("a", "b")
			w.Sim.Edit(func(e *vcdsim.Editor) {
				e.DeleteVM(e.VM("a"))
				tt.edit(w, e)
			})
			w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
			first := time.Now()

			stopAt(w, first)
			w.Expect(isGone(w, "a")).To(BeFalse())
			w.Expect(w.VCDMachine("a").Annotations).To(HaveKey(infrav1.MissingSinceAnnotation))
			stopAt(w, first.Add(absence.ProofInterval-time.Second))
			w.Expect(isGone(w, "a")).To(BeFalse())
			stopAt(w, first.Add(absence.ProofInterval))
			w.Expect(isGone(w, "a")).To(BeTrue())
			w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("VMDeleted")))
		})
	}
}

func TestVMThatIsSeenAgainIsNotMissing(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	m := w.VCDMachine("cp-0")
	m.Annotations[infrav1.MissingSinceAnnotation] = "2020-01-01T00:00:00Z"
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())

	_, err := w.ReconcileMachine("cp-0")

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.VCDMachine("cp-0").Annotations).NotTo(HaveKey(infrav1.MissingSinceAnnotation))
}

func TestMachineWhoseCreationMayStillComeIsLookedForTwice(t *testing.T) {
	t.Parallel()
	for _, layout := range []infrav1.VAppLayout{infrav1.VAppPerCluster, infrav1.VAppPerMachine} {
		t.Run(string(layout), func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
				m.Finalizers = []string{infrav1.MachineFinalizer}
				m.Annotations = map[string]string{
					infrav1.InstanceIDAnnotation: "id", infrav1.VMNameAnnotation: "cp-0", infrav1.CreationRequestedAnnotation: time.Now().UTC().Format(time.RFC3339),
				}
			})...)
			c := w.VCDCluster()
			c.Spec.VApp.Layout = layout
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			w.Ready()
			w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())

			w.Expect(isGone(w, "cp-0")).To(BeFalse())
			w.Later(62 * time.Second)
			w.Expect(isGone(w, "cp-0")).To(BeTrue())
		})
	}
}

func TestManagerKilledWhileVCDDeletesKnowsThatTheVMIsGone(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Ready("a", "b")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Sim.State().VMs).To(HaveLen(1))
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Restart(t, events.NewFakeRecorder(100))

	w.Expect(isGone(w, "a")).To(BeTrue())
}

func TestVAppThatIsNotSeenIsGoneAtTheSecondLook(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.DeleteMachine("cp-0")
	w.Sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp(controllertest.ClusterName)) })
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=orgVdc", Status: http.StatusForbidden, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN"})
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.ReadyReason)

	for _, d := range []time.Duration{0, time.Hour} { // The VDC is not seen either.
		w.Later(d)
		w.Expect(w.IsClusterGone()).To(BeFalse())
		w.Expect(conditions.GetReason(w.VCDCluster(), infrav1.VAppDeletedCondition)).To(Equal(infrav1.VAppUnverifiedReason))
	}
	w.Sim.Faults().Clear()
	w.Expect(w.IsClusterGone()).To(BeFalse())
	w.Later(time.Hour + 62*time.Second)
	w.Expect(w.IsClusterGone()).To(BeTrue())
}

func TestForeignKubeVIPSecretIsLeftAlone(t *testing.T) {
	foreign := &corev1.Secret{ObjectMeta: controllertest.Meta("c1-kube-vip"), Data: map[string][]byte{"mine": []byte("!")}}
	w := controllertest.New(t, foreign)

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.NameConflictReason)

	secret := &corev1.Secret{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(foreign), secret)).To(Succeed())
	w.Expect(secret.Data).To(Equal(foreign.Data))
	w.Expect(secret.OwnerReferences).To(BeEmpty())
	w.Expect(w.Client.Delete(w.Ctx, secret)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestKubeVIPSecretIsTakenBack(t *testing.T) {
	w := controllertest.New(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	secret := &corev1.Secret{ObjectMeta: controllertest.Meta("c1-kube-vip")}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	written := secret.DeepCopy()
	secret.OwnerReferences, secret.Data = nil, map[string][]byte{"broken": nil} // As after a restore from a backup.
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())

	_, err := w.ReconcileCluster()

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	w.Expect(secret.Data).To(Equal(written.Data))
	w.Expect(metav1.IsControlledBy(secret, w.VCDCluster())).To(BeTrue())
}

func TestForeignAddressClaimIsLookedAtAgain(t *testing.T) {
	w := controllertest.New(t, &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip")})
	c := w.VCDCluster()
	c.Spec.Endpoint.KubeVIP = &infrav1.KubeVIPEndpoint{PoolRef: &infrav1.IPPoolReference{Name: "vips", Kind: "InClusterIPPool", APIGroup: "ipam.cluster.x-k8s.io"}}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.NameConflictReason)

	result, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
}

func TestManagerKilledWhileVCDDeletesTheVAppOfAMachine(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0")...)
	c := w.VCDCluster()
	c.Spec.VApp.Layout = infrav1.VAppPerMachine
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Ready("md-0")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("md-0"))).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Sim.State().VApps).To(BeEmpty())
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Restart(t, events.NewFakeRecorder(100))

	w.Expect(isGone(w, "md-0")).To(BeFalse())
	w.Expect(w.VCDMachine("md-0").Annotations).To(HaveKeyWithValue(infrav1.VMGoneAnnotation, "true"))
	w.Later(62 * time.Second)
	w.Expect(isGone(w, "md-0")).To(BeTrue())
}
