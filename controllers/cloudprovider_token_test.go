package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// newAccountCCMWorld makes a world whose cluster logs in as a service account, and whose cloud controller manager may do so with
// another identity, "ccm".
func newAccountCCMWorld(t *testing.T) *ccmWorld {
	t.Helper()
	ccm := &infrav1.VCDIdentity{ObjectMeta: meta("ccm")}
	ccm.Spec.SecretRef.Name, ccm.Spec.Type, ccm.Spec.ShareWithClusters = "ccm-token", infrav1.CredentialServiceAccount, ptr.To(true)
	w := newCCMWorld(t, &corev1.Secret{ObjectMeta: meta("ccm-token")})
	ccm.Spec.Site = w.sim.URL()
	w.Expect(w.client.Create(w.ctx, ccm)).To(Succeed())
	w.grantCCM(w.newToken(t, "ccm"))
	w.useAccount(w.newToken(t, "manager"))
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.CloudProvider.IdentityRef = &infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "ccm"}
	})
	return w
}

// grantCCM writes a token into the Secret of the cloud controller manager's identity.
func (w *ccmWorld) grantCCM(token string) {
	secret := w.secret("ccm-token")
	secret.Data = map[string][]byte{"apiToken": []byte(token), "ca.crt": w.sim.CA()}
	w.Expect(w.client.Update(w.ctx, secret)).To(Succeed())
}

// nothingIsGiven checks that no Secret that Cluster API would apply was made.
func (w *ccmWorld) nothingIsGiven() {
	w.Expect(w.set("-cloud-provider")).To(BeNil())
	w.Expect(w.set("-cloud-provider-seed")).To(BeNil())
}

// another is what a cluster is after another one took the cloud controller manager's identity: the same, with another id.
func (w *ccmWorld) another(id string) {
	for _, suffix := range []string{"-cloud-provider", "-cloud-provider-seed"} {
		w.Expect(w.client.Delete(w.ctx, w.set(suffix))).To(Succeed())
	}
	w.workload = fakeClient()
	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.InfraID = id })
	w.reconciler = w.newReconciler()
}

func TestTheCloudProviderOfAServiceAccountHasOneOfItsOwn(t *testing.T) {
	w := newAccountCCMWorld(t)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.installed()

	manager := w.token()
	for _, suffix := range []string{"-cloud-provider", "-cloud-provider-seed"} {
		w.Expect(string(w.set(suffix).Data["manifests.yaml"])).NotTo(ContainSubstring(manager))
	}
	chain, _ := chainOf(w.secret("ccm-token"))
	w.Expect(chain.Holder).To(Equal("infra-1"))
}

func TestATokenGoesIntoOneWorkloadCluster(t *testing.T) {
	w := newAccountCCMWorld(t)
	w.installed()
	w.another("infra-2")

	w.Expect(w.pass()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", infrav1.TokenTakenReason), HaveField("Message", ContainSubstring("infra-1"))))
	w.nothingIsGiven()

	w.grantCCM(w.newToken(t, "another"))
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason), "a token that was granted anew is nobody's")
}

func TestTheTokenOfTheManagerReachesNoWorkloadCluster(t *testing.T) {
	tests := []struct {
		name, reason string
		change       func(*ccmWorld)
	}{
		{"an identity for both is the manager's", infrav1.IdentityNotShareableReason, func(w *ccmWorld) {
			w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.CloudProvider.IdentityRef = nil })
		}},
		{"also if it is named twice", infrav1.TokenTakenReason, func(w *ccmWorld) {
			w.changeCluster(func(c *infrav1.VCDCluster) {
				c.Spec.CloudProvider.IdentityRef = &infrav1.IdentityReference{Name: "tenant"}
			})
		}},
		{"two identities with one Secret are one", infrav1.TokenTakenReason, func(w *ccmWorld) {
			w.changeCCMIdentity(func(i *infrav1.VCDIdentity) { i.Spec.SecretRef.Name = "tenant-credentials" })
		}},
		{"whatever the other says of it", infrav1.TokenTakenReason, func(w *ccmWorld) {
			w.changeCCMIdentity(func(i *infrav1.VCDIdentity) {
				i.Spec.SecretRef.Name, i.Spec.Type = "tenant-credentials", infrav1.CredentialUser
			})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newAccountCCMWorld(t)
			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			tt.change(w)

			w.Expect(w.pass()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tt.reason)))

			w.nothingIsGiven()
		})
	}
}

func (w *ccmWorld) changeCCMIdentity(change func(*infrav1.VCDIdentity)) {
	i := &infrav1.VCDIdentity{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "ccm"}, i)).To(Succeed())
	change(i)
	w.Expect(w.client.Update(w.ctx, i)).To(Succeed())
}

func TestTheTokenOfAWorkloadClusterIsNotTheManagers(t *testing.T) {
	w := newAccountCCMWorld(t)
	w.installed()
	before := w.accountLogins()
	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.IdentityRef.Name = "ccm" })

	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.TokenTakenReason)

	w.Expect(w.accountLogins()).To(Equal(before))
}
