// SPDX-License-Identifier: Apache-2.0

package move

import (
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// account is the name of the manager's VCDIdentity and of its Secret. The identity is a service account, whose token
// changes with each login.
const account = name + "-account"

// asAccount creates the identity of the service account, and returns the manifest with a cluster that uses it. The
// cloud controller manager keeps its identity.
func (s *environment) asAccount(h cluster, manifest string) string {
	s.Expect(h.client.Create(s.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace},
		StringData: map[string]string{
			infrav1.SecretAPIToken: vcdsimtest.ServiceAccount(s.t, s.site.Simulator, account, vcdsim.RoleClusterAuthor),
			infrav1.SecretCABundle: string(s.site.Simulator.CA()),
		},
	})).To(Succeed())
	s.Expect(h.client.Create(s.t.Context(), &infrav1.VCDIdentity{
		ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace},
		Spec: infrav1.VCDIdentitySpec{
			Site:      s.site.Simulator.URL(),
			SecretRef: infrav1.LocalSecretReference{Name: account},
			Type:      infrav1.CredentialServiceAccount,
		},
	})).To(Succeed())
	const used = "  identityRef:\n    kind: VCDIdentity\n    name: "
	s.Expect(strings.Count(manifest, used)).To(Equal(1))
	before, after, _ := strings.Cut(manifest, used)
	_, after, _ = strings.Cut(after, "\n")
	return before + used + account + "\n" + after
}

// waitForMoveBlock waits until the Secret of the service account has the annotation that makes clusterctl move wait.
func (s *environment) waitForMoveBlock(h cluster) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		secret := &corev1.Secret{}
		g.Expect(h.client.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: account},
			secret)).To(Succeed())
		g.Expect(secret.Annotations).To(HaveKey(clusterctlv1.BlockMoveAnnotation))
	}, timeout, "250ms").Should(Succeed())
}

// expectAllLoginsSucceeded checks that each login used the latest token.
func (s *environment) expectAllLoginsSucceeded() {
	s.t.Helper()
	logins := 0
	for _, r := range s.site.Simulator.Requests() {
		if strings.HasPrefix(r.Path, "/oauth/") && strings.HasSuffix(r.Path, "/token") {
			logins++
			s.Expect(r.Status).To(Equal(http.StatusOK), r.Path)
		}
	}
	s.Expect(logins).To(BeNumerically(">", 1))
}
