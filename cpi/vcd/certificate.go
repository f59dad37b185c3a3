// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"crypto/tls"
	"encoding/pem"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// readerRole and account are the role for reading Secrets and the service account, as the manifests name them. Users
// bind the role only in the namespaces that need it.
const (
	readerRole = "system:cloud-controller-manager:tls-secrets"
	account    = "kube-system:cloud-controller-manager"
)

// SecretNames returns the names of the Secrets with the certificates of a Service's ports, sorted.
func (d *Dialect) SecretNames(s *corev1.Service) []string {
	requested, _ := annotations.Read(s.Annotations)
	var out []string
	for _, p := range s.Spec.Ports {
		if name := cmp.Or(requested.secrets[int(p.Port)], requested.secret); name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// certificate returns the certificate of a port: from a Secret, or else by an alias. Settings of the port take
// precedence.
func (e *extension) certificate(port int) lb.Certificate {
	if name := cmp.Or(e.secrets[port], e.secret); name != "" && e.aliases[port] == "" {
		return e.imported(name)
	}
	return lb.Certificate{Alias: cmp.Or(e.aliases[port], e.alias, e.dialect.Certificate, e.Cluster+"-cert")}
}

// imported returns the certificate in a Secret.
func (e *extension) imported(name string) lb.Certificate {
	secret := e.Secrets[name]
	switch {
	case slices.Contains(e.Hidden, name):
		e.request.Refuse(reasonInvalidSecret, "the Secret %q with the certificate cannot be read, grant access with: kubectl create rolebinding ccm-tls-secrets --namespace=%s --clusterrole=%s --serviceaccount=%s",
			name, e.Service.Namespace, readerRole, account)
		return lb.Certificate{Alias: "?"}
	case secret == nil:
		e.request.Refuse(reasonInvalidSecret,
			"the Secret %q with the certificate does not exist: create it in the namespace of the Service", name)
		return lb.Certificate{Alias: "?"}
	}
	chain := secret.Data[corev1.TLSCertKey]
	key := secret.Data[corev1.TLSPrivateKeyKey]
	if _, err := tls.X509KeyPair(chain, key); err != nil {
		e.request.Refuse(reasonInvalidSecret,
			"the Secret %q has no valid certificate and key: set the PEM chain in %s and the key in %s",
			name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return lb.Certificate{Chain: string(certificatesOf(chain)), Key: string(key), Source: "Secret " + name}
}

// certificatesOf returns only the certificates of a PEM bundle. Some bundles contain the key, which all readers of the
// certificate library would see.
func certificatesOf(bundle []byte) []byte {
	var out []byte
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	return out
}
