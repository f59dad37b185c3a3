// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/tokens"
)

// newAccountCCMEnv returns an environment whose cluster logs in as a service account. Its cloud controller manager may
// do so with another identity, "ccm".
func newAccountCCMEnv(t *testing.T) *ccmEnv {
	t.Helper()
	ccm := &infrav1.VCDIdentity{ObjectMeta: controllertest.Meta("ccm")}
	ccm.Spec.SecretRef.Name = "ccm-token"
	ccm.Spec.Type = infrav1.CredentialServiceAccount
	ccm.Spec.ShareWithClusters = ptr.To(true)
	w := newCCMEnv(t, &corev1.Secret{ObjectMeta: controllertest.Meta("ccm-token")})
	ccm.Spec.Site = w.Sim.URL()
	w.Expect(w.Client.Create(w.Ctx, ccm)).To(Succeed())
	w.grantCCM(w.NewToken(t, "ccm"))
	w.UseAccount(w.NewToken(t, "manager"))
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.CloudProvider.IdentityRef = &infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "ccm"}
	})
	return w
}

func TestTheCloudProviderHasItsOwnServiceAccount(t *testing.T) {
	w := newAccountCCMEnv(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.installed()

	manager := w.Token()
	for _, suffix := range []string{"-cloud-provider", "-cloud-provider-seed"} {
		w.Expect(string(w.set(suffix).Data["manifests.yaml"])).NotTo(ContainSubstring(manager))
	}
	chain, _ := tokens.ChainOf(w.Secret("ccm-token"))
	w.Expect(chain.Holder).To(Equal("infra-1"))
}

func TestATokenIsCopiedToOneWorkloadClusterOnly(t *testing.T) {
	w := newAccountCCMEnv(t)
	w.installed()
	w.another("infra-2")

	w.Expect(w.pass()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", infrav1.TokenInUseReason),
		HaveField("Message", ContainSubstring("infra-1"))))
	w.expectNoSecrets()

	w.grantCCM(w.NewToken(t, "another"))
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason),
		"a newly granted token has no holder")
}

func TestTheManagersTokenIsNotCopiedToAWorkloadCluster(t *testing.T) {
	tests := []struct {
		name, reason string
		change       func(*ccmEnv)
	}{
		{
			name:   "an identity for both belongs to the manager",
			reason: infrav1.IdentityNotShareableReason,
			change: func(w *ccmEnv) {
				w.changeCluster(func(c *infrav1.VCDCluster) {
					c.Spec.CloudProvider.IdentityRef = &infrav1.IdentityReference{Name: "tenant"}
				})
			},
		},
		{
			name:   "two identities with one Secret count as one",
			reason: infrav1.TokenInUseReason,
			change: func(w *ccmEnv) {
				w.changeCCMIdentity(func(i *infrav1.VCDIdentity) { i.Spec.SecretRef.Name = "tenant-credentials" })
			},
		},
		{
			name:   "regardless of the other cluster",
			reason: infrav1.TokenInUseReason,
			change: func(w *ccmEnv) {
				w.changeCCMIdentity(func(i *infrav1.VCDIdentity) {
					i.Spec.SecretRef.Name = "tenant-credentials"
					i.Spec.Type = infrav1.CredentialUser
				})
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newAccountCCMEnv(t)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			tt.change(w)

			w.Expect(w.pass()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tt.reason)))

			w.expectNoSecrets()
		})
	}
}

func TestAWorkloadClusterDoesNotUseTheManagersToken(t *testing.T) {
	w := newAccountCCMEnv(t)
	w.installed()
	before := w.AccountLogins()
	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.IdentityRef.Name = "ccm" })

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.TokenInUseReason)

	w.Expect(w.AccountLogins()).To(Equal(before))
}
