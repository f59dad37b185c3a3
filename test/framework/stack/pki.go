// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki contains the certificates of one stack. One authority signs the certificates of the API server, its clients and
// all webhook servers.
type pki struct {
	dir   string
	caPEM []byte
	ca    *x509.Certificate
	key   *ecdsa.PrivateKey
}

// CA returns the certificate authority of the API server and of all webhook servers, as PEM.
func (s *Stack) CA() []byte { return s.pki.caPEM }

// pair is a certificate and its key as PEM.
type pair struct {
	cert, key []byte
}

const validity = 365 * 24 * time.Hour

func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating a folder for certificates: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	template := certificate("test-stack-ca")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate authority: %w", err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate authority: %w", err)
	}
	p := &pki{dir: dir, ca: ca, key: key, caPEM: encode("CERTIFICATE", der)}
	return p, p.writeAll()
}

// writeAll writes the files that the programs read.
func (p *pki) writeAll() error {
	serving, err := p.issue("test-stack", nil, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return err
	}
	account, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating a key: %w", err)
	}
	accountDER, err := x509.MarshalPKCS8PrivateKey(account)
	if err != nil {
		return fmt.Errorf("encoding a key: %w", err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(account.Public())
	if err != nil {
		return fmt.Errorf("encoding a key: %w", err)
	}
	files := map[string][]byte{
		"ca.crt":  p.caPEM,
		"tls.crt": serving.cert,
		"tls.key": serving.key,
		"sa.key":  encode("PRIVATE KEY", accountDER),
		"sa.pub":  encode("PUBLIC KEY", publicDER),
	}
	for name, content := range files {
		if err := os.WriteFile(p.file(name), content, 0o600); err != nil {
			return fmt.Errorf("writing a certificate: %w", err)
		}
	}
	return nil
}

func (p *pki) file(name string) string {
	return filepath.Join(p.dir, name)
}

// issue signs a certificate with a name and groups. It is valid for the loopback address and the DNS names.
func (p *pki) issue(name string, groups []string, usage x509.ExtKeyUsage, dnsNames ...string) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("generating a key: %w", err)
	}
	template := certificate(name)
	template.Subject.Organization = groups
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	template.DNSNames = append([]string{"localhost"}, dnsNames...)
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, key.Public(), p.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("encoding a key: %w", err)
	}
	return pair{cert: encode("CERTIFICATE", der), key: encode("PRIVATE KEY", keyDER)}, nil
}

func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
