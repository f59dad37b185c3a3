// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Requirements of Kubernetes for requests to the signer kubernetes.io/kubelet-serving.
const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
)

// usages are the permitted usages of a kubelet's serving certificate. Only RSA keys use key encipherment.
var usages = []certificatesv1.KeyUsage{
	certificatesv1.UsageDigitalSignature,
	certificatesv1.UsageKeyEncipherment,
	certificatesv1.UsageServerAuth,
}

// maxRequestSize bounds a PEM-encoded request. A request with twenty names and addresses has less than 4 KiB.
const maxRequestSize = 16 * 1024

// An identity holds the names and addresses of a Node's machine in VCD.
type identity struct {
	names     []string // host name and DNS names
	addresses []netip.Addr
}

// nodeOf returns the name of the Node whose kubelet created a request.
func nodeOf(csr *certificatesv1.CertificateSigningRequest) (string, error) {
	name, isNode := strings.CutPrefix(csr.Spec.Username, nodeUserPrefix)
	if !isNode || name == "" || !slices.Contains(csr.Spec.Groups, nodesGroup) {
		return "", errors.New("its user is not a Node")
	}
	return name, nil
}

// check returns why a request must not be approved for a Node; nil if it may be approved.
func check(csr *certificatesv1.CertificateSigningRequest, node string, of identity) error {
	if !slices.Contains(csr.Spec.Usages, certificatesv1.UsageServerAuth) {
		return errors.New("it is not for server authentication")
	}
	for _, usage := range csr.Spec.Usages {
		if !slices.Contains(usages, usage) {
			return fmt.Errorf("usage %q is not allowed", usage)
		}
	}
	request, err := parse(csr.Spec.Request)
	if err != nil {
		return err
	}
	if request.Subject.CommonName != nodeUserPrefix+node || !slices.Equal(request.Subject.Organization, []string{nodesGroup}) {
		return errors.New("its subject does not match the Node")
	}
	return checkNames(request, of)
}

// parse reads a request and checks its signature.
func parse(text []byte) (*x509.CertificateRequest, error) {
	if len(text) > maxRequestSize {
		return nil, fmt.Errorf("it is larger than %d bytes", maxRequestSize)
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("it is not a PEM-encoded certificate request")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("its certificate request cannot be read")
	}
	if err := request.CheckSignature(); err != nil {
		return nil, errors.New("its signature is invalid")
	}
	return request, nil
}

// checkNames returns an error if the machine does not have all names and addresses of a request.
func checkNames(request *x509.CertificateRequest, of identity) error {
	switch {
	case len(request.EmailAddresses) > 0:
		return errors.New("it has email addresses")
	case len(request.URIs) > 0:
		return errors.New("it has URIs")
	case len(request.DNSNames)+len(request.IPAddresses) == 0:
		return errors.New("it has neither names nor addresses")
	}
	for _, name := range request.DNSNames {
		if !slices.Contains(of.names, name) {
			return fmt.Errorf("the machine does not have the name %q", name)
		}
	}
	for _, ip := range request.IPAddresses {
		address, ok := netip.AddrFromSlice(ip)
		if !ok || !slices.Contains(of.addresses, address.Unmap()) {
			return fmt.Errorf("the machine does not have the address %s", ip)
		}
	}
	return nil
}

// isOpen reports whether a request is neither approved, denied nor failed.
func isOpen(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) == 0 && !slices.ContainsFunc(csr.Status.Conditions,
		func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied ||
				c.Type == certificatesv1.CertificateFailed
		})
}
