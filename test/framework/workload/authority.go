// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/util/certs"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

// An authority is a certificate authority in the bootstrap data of a control plane node.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// readAuthority parses <base>.crt and <base>.key in the files that the guest writes. A missing file is an error.
// kubeadm would generate it, but no client outside the cluster could trust the result.
func readAuthority(u *guest.Userdata, base string) (authority, error) {
	crt, found := u.File(base + ".crt")
	if !found {
		return authority{}, fmt.Errorf("%s.crt is not written: no kubeconfig from outside the cluster would be trusted",
			base)
	}
	key, found := u.File(base + ".key")
	if !found {
		return authority{}, fmt.Errorf("%s.key is not written: no kubeconfig from outside the cluster would be trusted",
			base)
	}
	cert, err := certs.DecodeCertPEM([]byte(crt.Content))
	if err != nil || cert == nil {
		return authority{}, fmt.Errorf("%s.crt is not a certificate", base)
	}
	signer, err := certs.DecodePrivateKeyPEM([]byte(key.Content))
	if err != nil || signer == nil {
		return authority{}, fmt.Errorf("%s.key is not a private key", base)
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(cert.PublicKey) {
		return authority{}, fmt.Errorf("%s.key does not belong to %s.crt", base, base)
	}
	return authority{cert: cert, key: signer}, nil
}

// hash returns the hash of the certificate's public key, in the format of kubeadm's caCertHashes.
func (a authority) hash() string {
	sum := sha256.Sum256(a.cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// pinned reports whether kubeadm's caCertHashes pin this authority.
func (a authority) pinned(hashes []string) bool {
	for _, h := range hashes {
		if strings.EqualFold(h, a.hash()) {
			return true
		}
	}
	return false
}

// issue signs a certificate for a subject. hosts are its DNS names and IP addresses.
func (a authority) issue(subject pkix.Name, hosts ...string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	cert := &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", subject.CommonName, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// encode returns a certificate and its key as PEM.
func encode(c *tls.Certificate) (cert, key []byte, _ error) {
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// signed returns an error unless this authority signed the certificate of the TLS peer.
func (a authority) signed(state *tls.ConnectionState) error {
	if state == nil || len(state.VerifiedChains) == 0 {
		return errors.New("no client certificate of this cluster")
	}
	for _, chain := range state.VerifiedChains {
		if chain[len(chain)-1].Equal(a.cert) {
			return nil
		}
	}
	return fmt.Errorf("client certificate is not signed by %s", a.cert.Subject.CommonName)
}
