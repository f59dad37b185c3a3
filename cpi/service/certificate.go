package service

import (
	"crypto/tls"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
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
	if secret == nil {
		b.refuse(BadSecret, "the Secret %q with the certificate is not there or may not be read: create it in the namespace of the Service, and allow the cloud controller manager to get it", name)
		return lb.Certificate{Alias: "?"}
	}
	chain, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if _, err := tls.X509KeyPair(chain, key); err != nil {
		b.refuse(BadSecret, "the Secret %q holds no valid certificate with its key: put a PEM chain in %s and its key in %s", name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return lb.Certificate{Chain: string(chain), Key: string(key), Source: "Secret " + name}
}
