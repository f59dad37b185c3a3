// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func identity() *infrav1.VCDIdentity {
	return &infrav1.VCDIdentity{
		ObjectMeta: metav1.ObjectMeta{Name: "acme", Namespace: "default"},
		Spec: infrav1.VCDIdentitySpec{
			Site:      "https://vcd.example.com",
			SecretRef: infrav1.LocalSecretReference{Name: "acme"},
			Type:      infrav1.CredentialUser,
		},
	}
}

func TestVCDIdentity(t *testing.T) {
	bundle := func(text string) func(i *infrav1.VCDIdentity) {
		return func(i *infrav1.VCDIdentity) { i.Spec.TLS.CABundle = text }
	}
	certificate, key := selfSigned(t)
	caField := []string{"spec.tls.caBundle"}
	tests := []rejection[*infrav1.VCDIdentity]{
		{"a user is an identity", func(*infrav1.VCDIdentity) {}, nil, ""},
		{
			"a service account is one, too",
			func(i *infrav1.VCDIdentity) { i.Spec.Type = infrav1.CredentialServiceAccount },
			nil,
			"",
		},
		{
			"a Secret has a name that Kubernetes allows",
			func(i *infrav1.VCDIdentity) { i.Spec.SecretRef.Name = "A_B" },
			[]string{"spec.secretRef.name"},
			"RFC 1123",
		},
		{"a bundle can hold several certificates", bundle(certificate + "# second\n" + certificate), nil, ""},
		{"a bundle is not a file name", bundle("/etc/ssl/ca.crt"), caField, "PEM"},
		{"a bundle holds no key", bundle(certificate + key), caField, "PEM"},
		{"a bundle is whole", bundle(certificate + certificate[:len(certificate)-30]), caField, "PEM"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.checkCreate(t, identityValidator(), identity()) })
	}
}

func TestVCDIdentityWithoutVerificationWarns(t *testing.T) {
	g := NewWithT(t)
	i := identity()
	yes := true
	i.Spec.TLS.InsecureSkipVerify = &yes

	warnings, err := identityValidator().ValidateCreate(request(false), i)

	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(warnings).To(ConsistOf(ContainSubstring("spec.tls.insecureSkipVerify")))
}

func TestVCDIdentityDoesNotRepeatTheBundle(t *testing.T) {
	g := NewWithT(t)
	i := identity()
	i.Spec.TLS.CABundle = "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----"

	_, err := identityValidator().ValidateCreate(request(false), i)

	g.Expect(err).To(HaveOccurred())
	g.Expect(err.Error()).ToNot(ContainSubstring("canary"))
}

func TestVCDClusterIdentity(t *testing.T) {
	allow := func(allowed *infrav1.AllowedNamespaces) func(*infrav1.VCDClusterIdentity) {
		return func(i *infrav1.VCDClusterIdentity) { i.Spec.AllowedNamespaces = allowed }
	}
	orgs := func(names ...string) func(*infrav1.VCDClusterIdentity) {
		return func(i *infrav1.VCDClusterIdentity) { i.Spec.Orgs = names }
	}
	tests := []rejection[*infrav1.VCDClusterIdentity]{
		{
			"namespaces can be listed and selected",
			allow(&infrav1.AllowedNamespaces{
				List:     []string{"a"},
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			}),
			nil,
			"",
		},
		{
			"a namespace has a name that Kubernetes allows",
			allow(&infrav1.AllowedNamespaces{List: []string{"a", "*"}}),
			[]string{"spec.allowedNamespaces.list[1]"},
			"RFC 1123",
		},
		{
			"a selector can be read",
			allow(&infrav1.AllowedNamespaces{Selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}},
			}}),
			[]string{"spec.allowedNamespaces.selector"},
			"not a valid label selector operator",
		},
		{"organizations can be listed", orgs("acme", "Org 2"), nil, ""},
		{"any organization stands alone", orgs("acme", "*"), []string{"spec.orgs[1]"}, "must be the only entry"},
		{"an organization is no pattern", orgs("acme-*"), []string{"spec.orgs[0]"}, "patterns are not supported"},
		{"an organization has no space around it", orgs("acme "), []string{"spec.orgs[0]"}, "space"},
		{
			"a service account is one, too",
			func(i *infrav1.VCDClusterIdentity) { i.Spec.Type = infrav1.CredentialServiceAccount },
			nil,
			"",
		},
		{
			"the rules of a VCDIdentity hold too",
			func(i *infrav1.VCDClusterIdentity) { i.Spec.SecretRef.Name = "A_B" },
			[]string{"spec.secretRef.name"},
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.checkCreate(t, clusterIdentityValidator(), &infrav1.VCDClusterIdentity{
				ObjectMeta: metav1.ObjectMeta{Name: "acme"},
				Spec:       infrav1.VCDClusterIdentitySpec{VCDIdentitySpec: identity().Spec, Orgs: []string{"*"}},
			})
		})
	}
}

func TestVCDClusterIdentityForNobodyWarns(t *testing.T) {
	g := NewWithT(t)

	warnings, err := clusterIdentityValidator().ValidateCreate(request(false), &infrav1.VCDClusterIdentity{
		Spec: infrav1.VCDClusterIdentitySpec{VCDIdentitySpec: identity().Spec, Orgs: []string{"*"}},
	})

	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(warnings).To(ConsistOf(ContainSubstring("spec.allowedNamespaces")))
}

func TestVCDClusterIdentityOfAServiceAccountForManyOrganizationsWarns(t *testing.T) {
	g := NewWithT(t)
	i := &infrav1.VCDClusterIdentity{Spec: infrav1.VCDClusterIdentitySpec{
		VCDIdentitySpec:   identity().Spec,
		Orgs:              []string{"*"},
		AllowedNamespaces: &infrav1.AllowedNamespaces{List: []string{"a"}},
	}}
	i.Spec.Type = infrav1.CredentialServiceAccount

	many, err := clusterIdentityValidator().ValidateCreate(request(false), i)
	g.Expect(err).ToNot(HaveOccurred())
	i.Spec.Orgs = []string{"acme"}
	one, err := clusterIdentityValidator().ValidateCreate(request(false), i)
	g.Expect(err).ToNot(HaveOccurred())

	g.Expect(many).To(ConsistOf(ContainSubstring("spec.orgs")))
	g.Expect(one).To(BeEmpty())
}

// selfSigned returns a certificate and its key in PEM.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	g := NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).ToNot(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	g.Expect(err).ToNot(HaveOccurred())
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	g.Expect(err).ToNot(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}
