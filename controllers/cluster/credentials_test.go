// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

const moved = "vc1-capvcd-credentials"

// converted returns an environment whose VCDCluster was converted from one of CAPVCD.
func converted(t *testing.T, identity string, held infrav1.CAPVCDCredentials, objects ...client.Object) *controllertest.Env {
	t.Helper()
	w := controllertest.New(t, objects...)
	c := w.VCDCluster()
	c.Spec.IdentityRef = infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: identity}
	c.Spec.CAPVCDCredentials = &held
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	return w
}

// trust adds the simulator's CA to an identity. CAPVCD did not need it.
func trust(w *controllertest.Env, name string) {
	identity := &infrav1.VCDIdentity{ObjectMeta: controllertest.Meta(name)}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(identity), identity)).To(Succeed())
	identity.Spec.TLS.CABundle = string(w.Sim.CA())
	w.Expect(w.Client.Update(w.Ctx, identity)).To(Succeed())
}

func userSecret(namespace, name string, data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	secret.Data = map[string][]byte{}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

func TestCAPVCDCredentialsAreMovedToASecret(t *testing.T) {
	ref := func(name string) *infrav1.CAPVCDSecretReference {
		return &infrav1.CAPVCDSecretReference{Name: name, Namespace: controllertest.Namespace}
	}
	login := map[string]string{"username": "capvcd", "password": "password"}
	tests := []struct {
		name     string
		held     infrav1.CAPVCDCredentials
		identity string
		secret   *corev1.Secret
		owned    bool
	}{
		{
			name:     "a user and a password",
			held:     infrav1.CAPVCDCredentials{Username: "capvcd", Password: "password"},
			identity: moved,
			owned:    true,
		},
		{
			name:     "a Secret in the namespace",
			held:     infrav1.CAPVCDCredentials{SecretRef: ref("vcd")},
			identity: "vcd",
			secret:   userSecret(controllertest.Namespace, "vcd", login),
		},
		{
			name: "a password in addition to a Secret, which overrides it",
			held: infrav1.CAPVCDCredentials{
				Username:  "capvcd",
				Password:  "wrong",
				SecretRef: ref("vcd"),
			},
			identity: moved,
			secret:   userSecret(controllertest.Namespace, "vcd", map[string]string{"password": "password"}),
			owned:    true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var objects []client.Object
			if tt.secret != nil {
				objects = append(objects, tt.secret)
			}
			w := converted(t, tt.identity, tt.held, objects...)

			w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CertificateNotTrustedReason)
			w.Expect(w.VCDCluster().Spec.CAPVCDCredentials).To(BeNil())
			trust(w, tt.identity)
			w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.ReadyReason)
			secret := w.Secret(tt.identity)
			w.Expect(secret.Data).To(HaveKeyWithValue("username", []byte("capvcd")))
			w.Expect(secret.Data).To(HaveKeyWithValue("password", []byte("password")))
			w.Expect(metav1.IsControlledBy(secret, w.VCDCluster())).To(Equal(tt.owned))
			identity := &infrav1.VCDIdentity{ObjectMeta: controllertest.Meta(tt.identity)}
			w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(identity), identity)).To(Succeed())
			w.Expect(identity.Spec.Site).To(Equal(w.Sim.URL()))
			w.Expect(identity.Spec.SecretRef.Name).To(Equal(tt.identity))
			w.Expect(metav1.IsControlledBy(identity, w.VCDCluster())).To(Equal(tt.owned))
		})
	}
}

func TestCAPVCDCredentialsAppearNowhereElse(t *testing.T) {
	const canary = "canary-token"
	w := converted(t, moved, infrav1.CAPVCDCredentials{RefreshToken: canary})

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CertificateNotTrustedReason)

	w.Expect(w.Secret(moved).Data).To(HaveKeyWithValue("refreshToken", []byte(canary)))
	w.Expect(json.Marshal(w.VCDCluster())).NotTo(ContainSubstring(canary))
	w.Expect(w.EventTexts()).NotTo(ContainElement(ContainSubstring(canary)))
}

func TestASecretInAnotherNamespaceIsNotRead(t *testing.T) {
	secret := userSecret("team-b", "vcd", map[string]string{"username": "capvcd", "password": "password"})
	w := converted(t, moved, infrav1.CAPVCDCredentials{
		SecretRef: &infrav1.CAPVCDSecretReference{Name: "vcd", Namespace: "team-b"},
	}, secret)

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.SecretInOtherNamespaceReason)

	w.Expect(conditions.Get(w.VCDCluster(), infrav1.IdentityReadyCondition).Message).To(And(
		ContainSubstring("team-b/vcd"), ContainSubstring("VCDIdentity "+moved)))
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: moved},
		&corev1.Secret{})).NotTo(Succeed())

	c := w.VCDCluster()
	c.Spec.IdentityRef.Name = "tenant"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().Spec.CAPVCDCredentials).To(BeNil())
}

func TestASecretWithTheSameNameIsNotOverwritten(t *testing.T) {
	w := converted(t, moved, infrav1.CAPVCDCredentials{Username: "capvcd", Password: "password"},
		userSecret(controllertest.Namespace, moved, map[string]string{"something": "else"}))

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.NameConflictReason)

	w.Expect(w.Secret(moved).Data).To(Equal(map[string][]byte{"something": []byte("else")}))
	w.Expect(w.VCDCluster().Spec.CAPVCDCredentials).NotTo(BeNil())
}

func TestCAPVCDCredentialsAreMovedDuringDeletionToo(t *testing.T) {
	w := converted(t, moved, infrav1.CAPVCDCredentials{Username: "capvcd", Password: "password"})
	c := w.VCDCluster()
	c.Finalizers = []string{infrav1.ClusterFinalizer}
	c.Spec.InfraID = "NO_RDE_11111111-1111-1111-1111-111111111111"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, c)).To(Succeed())

	w.EventuallyCluster(infrav1.VAppDeletedCondition, infrav1.CertificateNotTrustedReason)

	w.Expect(w.VCDCluster().Spec.CAPVCDCredentials).To(BeNil())
	trust(w, moved)
	w.EventuallyCluster(infrav1.VAppDeletedCondition, infrav1.VAppUnverifiedReason)
}

// A CAPVCD manifest may be reapplied repeatedly, with the Secret reference that was shown to the user.
func TestReappliedCredentialsAreMovedAgain(t *testing.T) {
	w := converted(t, moved, infrav1.CAPVCDCredentials{Username: "capvcd", Password: "former"})
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CertificateNotTrustedReason)
	trust(w, moved)
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CredentialsRejectedReason)

	c := w.VCDCluster()
	c.Spec.CAPVCDCredentials = &infrav1.CAPVCDCredentials{
		Username:  "capvcd",
		Password:  "password",
		SecretRef: &infrav1.CAPVCDSecretReference{Name: moved, Namespace: controllertest.Namespace},
	}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().Spec.CAPVCDCredentials).To(BeNil())
	w.Expect(w.Secret(moved).Data).To(HaveKeyWithValue("password", []byte("password")))
}
