// SPDX-License-Identifier: Apache-2.0

package tlsserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// An Authority signs the certificates of servers.
type Authority struct {
	pem   []byte
	cert  *x509.Certificate
	key   crypto.Signer
	fixed *tls.Certificate // used for every server instead of a signed one
}

const certificateLifetime = 10 * 365 * 24 * time.Hour

// NewAuthority creates an authority with a new key.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the authority's key: %w", err)
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "vcdsim authority", SerialNumber: now.Format(time.RFC3339Nano)},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority: %w", err)
	}
	return &Authority{pem: toPEM("CERTIFICATE", der), cert: cert, key: key}, nil
}

// ParseAuthority reads an authority from the PEM of its certificate and its key.
func ParseAuthority(certificate, key []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("reading the authority: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	switch {
	case !ok:
		return nil, fmt.Errorf("the authority's key, a %T, cannot sign", pair.PrivateKey)
	case !pair.Leaf.IsCA:
		return nil, fmt.Errorf("the certificate of %q is not an authority's", pair.Leaf.Subject.CommonName)
	case time.Now().After(pair.Leaf.NotAfter):
		return nil, fmt.Errorf("the authority %q has expired at %s", pair.Leaf.Subject.CommonName,
			pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return &Authority{pem: toPEM("CERTIFICATE", pair.Certificate[0]), cert: pair.Leaf, key: signer}, nil
}

// FixedAuthority returns an authority that gives one certificate to every server. Clients trust the last certificate of
// its chain.
func FixedAuthority(certificate tls.Certificate) (*Authority, error) {
	if len(certificate.Certificate) == 0 {
		return nil, errors.New("the certificate is empty")
	}
	last := certificate.Certificate[len(certificate.Certificate)-1]
	return &Authority{pem: toPEM("CERTIFICATE", last), fixed: &certificate}, nil
}

// Certificate returns the authority's certificate as PEM.
func (a *Authority) Certificate() []byte { return slices.Clone(a.pem) }

// Key returns the authority's private key as PEM.
func (a *Authority) Key() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("writing the authority's key: %w", err)
	}
	return toPEM("PRIVATE KEY", der), nil
}

func toPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// issue creates a certificate for the loopback addresses and additional hosts.
func (a *Authority) issue(hosts ...string) (*tls.Certificate, error) {
	if a.fixed != nil {
		return a.fixed, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the server's key: %w", err)
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "vcdsim"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certificateLifetime),
		DNSNames:     []string{"localhost", "vcdsim"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else if h != "" {
			cert.DNSNames = append(cert.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the server's certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
