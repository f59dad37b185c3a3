// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
)

// TestTLS terminates TLS at the load balancer with a certificate in the library and then with one in a Secret, replaces
// the latter, and finally disables TLS termination.
func TestTLS(t *testing.T) {
	t.Parallel()
	w := shared(t)
	g := NewWithT(t)
	ns := w.namespace(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tls"},
		Type:       corev1.SecretTypeTLS,
		Data:       newCertificate(t, "one"),
	}
	g.Expect(w.client.Create(t.Context(), secret)).To(Succeed())
	https := port("https", 443)
	protocol := "https"
	https.AppProtocol = &protocol
	s := w.serviceIn(t, ns, "web", ports(https), annotated(sslPorts, "443", sslAlias, certificate))
	addresses := s.awaitServed()
	certificateInUse := func() string { return s.cloud.frontends(s.uid)[0].Certificate }
	g.Expect(certificateInUse()).To(Equal(certificate))

	t.Log("The certificate of a Secret is imported once the controller may read it.")
	s.change(annotated(sslAlias, "", tlsSecret, "tls"))
	g.Eventually(s.warnings, timeout,
		poll).Should(ContainElement(ContainSubstring("kubectl create rolebinding ccm-tls-secrets --namespace=" + ns)))
	g.Expect(certificateInUse()).To(Equal(certificate), "the current certificate should stay in use")
	w.allowSecretReads(t, ns)
	g.Eventually(certificateInUse, timeout, poll).ShouldNot(Equal(certificate))
	first := certificateInUse()
	g.Expect(s.awaitServed()).To(Equal(addresses))
	g.Expect(kinds(s.cloud.leftovers(s.uid))).To(HaveKeyWithValue("certificate", 1))

	t.Log("The certificate is replaced when the Secret changes.")
	secret.Data = newCertificate(t, "two")
	g.Expect(w.client.Update(t.Context(), secret)).To(Succeed())
	g.Eventually(certificateInUse, timeout, poll).ShouldNot(Equal(first))
	g.Eventually(func() map[string]int { return kinds(s.cloud.leftovers(s.uid)) }, timeout,
		poll).Should(HaveKeyWithValue("certificate", 1))
	g.Expect(s.awaitServed()).To(Equal(addresses))

	t.Log("Without TLS termination, no certificate is used.")
	s.change(annotated(sslPassed, "true"))
	g.Eventually(certificateInUse, timeout, poll).Should(BeEmpty())
	g.Eventually(func() map[string]int { return kinds(s.cloud.leftovers(s.uid)) }, timeout,
		poll).ShouldNot(HaveKey("certificate"))
	g.Expect(s.awaitServed()).To(Equal(addresses))
}

// allowSecretReads binds the role that allows the controller to read the Secrets of a namespace.
func (w *fixture) allowSecretReads(t *testing.T, namespace string) {
	t.Helper()
	NewWithT(t).Expect(w.client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ccm-tls-secrets"},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName,
			Kind:     "ClusterRole",
			Name:     "system:cloud-controller-manager:tls-secrets",
		},
		Subjects: []rbacv1.Subject{{
			Kind:      rbacv1.ServiceAccountKind,
			Namespace: addons.Namespace,
			Name:      serviceAccount,
		}},
	})).To(Succeed())
}

// newCertificate returns the data of a TLS Secret with a self-signed certificate.
func newCertificate(t *testing.T, name string) map[string][]byte {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}
