package service

import (
	"crypto/tls"
	"encoding/pem"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// Who reads Secrets, and the role that lets it, as the manifests name them: the role is bound where people want it only.
const (
	readerRole = "system:cloud-controller-manager:tls-secrets"
	account    = "kube-system:cloud-controller-manager"
)

// SecretNames are the names of the Secrets, in the namespace of a Service, that its load balancer takes certificates from, sorted.
func SecretNames(s *corev1.Service) []string {
	w, _ := read(s.Annotations)
	var out []string
	if w.secret != "" {
		out = append(out, w.secret)
	}
	for _, name := range w.secrets {
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// certificate is that of a port: from a Secret, else by alias, the port's own first.
func (b *builder) certificate(port int) lb.Certificate {
	if name := or(b.secrets[port], b.secret); name != "" && b.aliases[port] == "" {
		return b.imported(name)
	}
	if alias := or(b.aliases[port], b.alias); alias != "" {
		return lb.Certificate{Alias: alias}
	}
	return lb.Certificate{Alias: or(b.Defaults.Certificate, b.Defaults.Cluster+"-cert")}
}

// imported reads a certificate from a Secret.
func (b *builder) imported(name string) lb.Certificate {
	secret := b.Secrets[name]
	switch {
	case slices.Contains(b.Hidden, name):
		b.refuse(BadSecret, "the Secret %q with the certificate may not be read: kubectl create rolebinding ccm-tls-secrets --namespace=%s --clusterrole=%s --serviceaccount=%s",
			name, b.Service.Namespace, readerRole, account)
		return lb.Certificate{Alias: "?"}
	case secret == nil:
		b.refuse(BadSecret, "the Secret %q with the certificate is not there: create it in the namespace of the Service", name)
		return lb.Certificate{Alias: "?"}
	}
	chain, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if _, err := tls.X509KeyPair(chain, key); err != nil {
		b.refuse(BadSecret, "the Secret %q holds no valid certificate with its key: put a PEM chain in %s and its key in %s", name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return lb.Certificate{Chain: string(certificatesOf(chain)), Key: string(key), Source: "Secret " + name}
}

// certificatesOf leaves of PEM only the certificates: some put the key into the same file, which the library shows to all who may look.
func certificatesOf(bundle []byte) []byte {
	var out []byte
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	return out
}
