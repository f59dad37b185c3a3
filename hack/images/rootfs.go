// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/images/pack"
)

const (
	// certificates is the first path where Go looks for certificates on Linux.
	certificates = "/etc/ssl/certs/ca-certificates.crt"
	accounts     = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	groups       = "root:x:0:\nnonroot:x:65532:\n"
)

// base returns the files that every image contains: certificates of public authorities, the accounts, and a writable
// folder for temporary files.
func base() pack.Tree {
	return pack.Tree{
		Files: map[string][]byte{
			certificates:  rootCertificates(),
			"/etc/passwd": []byte(accounts),
			"/etc/group":  []byte(groups),
		},
		Open: []string{"/tmp"},
	}
}

// rootCertificates returns Mozilla's root certificates from a Go module. Its version is in go.mod, so every machine
// writes the same bytes, unlike with the certificate file of an operating system. Certificates that Mozilla trusts only
// under constraints are excluded, because a file cannot express the constraints.
func rootCertificates() []byte {
	var out strings.Builder
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if certificate, err := x509.ParseCertificate(root.Certificate); err == nil {
			fmt.Fprintf(&out, "# %s\n", certificate.Subject)
		}
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // cannot fail in memory
	}
	return []byte(out.String())
}
