// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterctlconfig "sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// certManagerKinds are the CRDs of cert-manager. Its programs cannot be built from Go modules, because the paths of the
// modules in its repository do not match their folders.
//
//go:embed certmanager.yaml
var certManagerKinds []byte

// CertManager returns the manifest that clusterctl init installs instead of cert-manager: only its CRDs. An Issuer
// issues the certificates.
func CertManager() []byte { return certManagerKinds }

// An Issuer replaces cert-manager in any cluster. It signs with the certificate authority of a stack.
type Issuer struct{ pki *pki }

// NewIssuer returns the issuer of a stack.
func NewIssuer(s *Stack) Issuer { return Issuer{pki: s.pki} }

const (
	certManagerVersion = clusterctlconfig.CertManagerDefaultVersion
	injectFrom         = "cert-manager.io/inject-ca-from"
)

func certManagerRelease(components []byte) Release {
	return Release{
		Provider: "cert-manager",
		Version:  certManagerVersion,
		Files:    map[string][]byte{componentsFile("cert-manager"): components},
	}
}

// Certify issues the requested certificates, and injects the CA into webhooks and conversions. Unlike cert-manager,
// which runs continuously, it does this once per call.
func (i Issuer) Certify(ctx context.Context, c client.Client) error {
	requested := &unstructured.UnstructuredList{}
	requested.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "CertificateList"})
	if err := c.List(ctx, requested); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("listing certificates: %w", err)
	}
	for n := range requested.Items {
		if err := i.certify(ctx, c, &requested.Items[n]); err != nil {
			return fmt.Errorf("certificate %s: %w", client.ObjectKeyFromObject(&requested.Items[n]), err)
		}
	}
	return errors.Join(
		i.injectAll(ctx, c, "apiextensions.k8s.io/v1", "CustomResourceDefinitionList"),
		i.injectAll(ctx, c, "admissionregistration.k8s.io/v1", "MutatingWebhookConfigurationList"),
		i.injectAll(ctx, c, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfigurationList"),
	)
}

// certify creates the Secret of a certificate if it does not exist.
func (i Issuer) certify(ctx context.Context, c client.Client, requested *unstructured.Unstructured) error {
	name, _, nameErr := unstructured.NestedString(requested.Object, "spec", "secretName")
	names, _, namesErr := unstructured.NestedStringSlice(requested.Object, "spec", "dnsNames")
	if err := errors.Join(nameErr, namesErr); err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: requested.GetNamespace()},
		Type:       corev1.SecretTypeTLS,
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		return err
	}
	issued, err := i.pki.issue(requested.GetName(), nil, x509.ExtKeyUsageServerAuth, names...)
	if err != nil {
		return err
	}
	secret.Data = map[string][]byte{
		corev1.TLSCertKey:              issued.cert,
		corev1.TLSPrivateKeyKey:        issued.key,
		corev1.ServiceAccountRootCAKey: i.pki.caPEM,
	}
	return c.Create(ctx, secret)
}

// injectAll injects the CA into the objects of a kind that request it and lack it.
func (i Issuer) injectAll(ctx context.Context, c client.Client, apiVersion, kind string) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind)
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("listing objects with CA injection: %w", err)
	}
	for n := range list.Items {
		object := &list.Items[n]
		if object.GetAnnotations()[injectFrom] == "" {
			continue
		}
		before := object.DeepCopy()
		bundle := base64String(i.pki.caPEM)
		changed := false
		err := eachClientConfig(object, func(config map[string]any) {
			changed = changed || config["caBundle"] != bundle
			config["caBundle"] = bundle
		})
		if err == nil && changed {
			err = c.Patch(ctx, object, client.MergeFrom(before))
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
