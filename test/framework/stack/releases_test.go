// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

const certificateRequest = `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving, namespace: default}
spec: {secretName: serving-cert, dnsNames: [tiny.default.svc], issuerRef: {name: tiny}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: tiny, annotations: {cert-manager.io/inject-ca-from: default/serving}}
webhooks:
- name: tiny.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: tiny, namespace: default, path: /validate}}
`

func testCertificates(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	issuer := stack.NewIssuer(s)
	g.Expect(issuer.Certify(ctx, s.Client())).To(Succeed(), "without cert-manager's CRDs")
	crds, err := utilyaml.ToUnstructured(stack.CertManager())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.InstallCRDs(ctx, crds...)).To(Succeed())
	objects, err := utilyaml.ToUnstructured([]byte(certificateRequest))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Apply(ctx, objects...)).To(Succeed())

	g.Expect(issuer.Certify(ctx, s.Client())).To(Succeed())
	secret := &corev1.Secret{}
	g.Expect(s.Client().Get(ctx, client.ObjectKey{Namespace: "default", Name: "serving-cert"}, secret)).To(Succeed())
	hook := &admissionv1.ValidatingWebhookConfiguration{}
	g.Expect(s.Client().Get(ctx, client.ObjectKey{Name: "tiny"}, hook)).To(Succeed())
	serving, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	g.Expect(err).NotTo(HaveOccurred())
	trusted := x509.NewCertPool()
	g.Expect(trusted.AppendCertsFromPEM(hook.Webhooks[0].ClientConfig.CABundle)).To(BeTrue())
	_, err = serving.Leaf.Verify(x509.VerifyOptions{DNSName: "tiny.default.svc", Roots: trusted})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hook.Webhooks[0].ClientConfig.Service).NotTo(BeNil())

	g.Expect(issuer.Certify(ctx, s.Client())).To(Succeed())
	again := &corev1.Secret{}
	g.Expect(s.Client().Get(ctx, client.ObjectKeyFromObject(secret), again)).To(Succeed())
	g.Expect(again.ResourceVersion).To(Equal(secret.ResourceVersion), "an existing certificate is kept")
}

func testReleases(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	releases, err := stack.Releases(s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.LocalRepository(stack.Repository{
		Version:     "v2.0.0",
		Others:      releases,
		CertManager: stack.CertManager(),
		Files:       map[string][]byte{"infrastructure-components.yaml": []byte(components), "metadata.yaml": []byte(metadata)},
	})).To(Succeed())
	out, err := s.Clusterctl(ctx, "init", "list-images", "--core=cluster-api", "--bootstrap=kubeadm",
		"--control-plane=kubeadm", "--infrastructure=vcd", "--ipam=in-cluster")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(And(
		ContainSubstring("registry.k8s.io/cluster-api/cluster-api-controller:v1."),
		ContainSubstring("registry.k8s.io/cluster-api/kubeadm-bootstrap-controller:v1."),
		ContainSubstring("registry.k8s.io/cluster-api/kubeadm-control-plane-controller:v1."),
		ContainSubstring("registry.k8s.io/capi-ipam-ic/cluster-api-ipam-in-cluster-controller:v1."),
		Not(ContainSubstring("staging"))))
}

func TestWithImageReplacesTheSingleImage(t *testing.T) {
	g := NewWithT(t)
	const from = "spec:\n  containers:\n  - image: example.com/a:main\n    imagePullPolicy: Always\n    name: manager\n"
	out, err := stack.WithImage([]byte(from), "example.com/b:v1")
	g.Expect(err).NotTo(HaveOccurred())
	var read, want map[string]any
	g.Expect(yaml.Unmarshal(out, &read)).To(Succeed())
	g.Expect(yaml.Unmarshal([]byte(`{spec: {containers: [{image: "example.com/b:v1", imagePullPolicy: IfNotPresent,
		name: manager}]}}`), &want)).To(Succeed())
	g.Expect(read).To(Equal(want))

	_, err = stack.WithImage([]byte(from+from), "example.com/b:v1")
	g.Expect(err).To(MatchError(ContainSubstring("2 images")))
}
