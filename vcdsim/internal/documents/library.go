// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"crypto/x509"
	"encoding/pem"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// CertificatePath is the path of the certificate library.
const CertificatePath = "1.0.0/ssl/certificateLibrary"

// LibraryCollections returns the collections of the certificate library.
func LibraryCollections() []*Collection {
	alias := []string{"alias"}
	certificates := Collection{
		Kind:     "certificateLibraryItem",
		Right:    "CERTIFICATE_LIBRARY",
		Unique:   alias,
		Required: []string{"alias", "certificate"},
		Hidden:   []string{"privateKey", "privateKeyPassphrase"},
		Fixed:    []string{"certificate"},
		Defaults: map[string]any{"description": ""},
		Check:    checkCertificate,
		Free:     checkCertificateUnused,
	}
	certificates.Path = CertificatePath
	name := []string{"name", "vendor", "version"}
	return []*Collection{
		&certificates,
		{
			Path:     "1.0.0/externalEndpoints",
			Kind:     "extensionEndpoint",
			Right:    "EXTERNAL_ENDPOINT",
			Provider: true,
			Unique:   name,
			Required: name,
			Fixed:    name,
			NewID:    endpointID,
			Free:     checkDisabled,
		},
		{Path: "1.0.0/apiFilters", Kind: "apiFilter", Right: "API_FILTER", Provider: true},
	}
}

// checkCertificate returns an error if the text is not a certificate.
func checkCertificate(_ *api.Request, body map[string]any) error {
	if n := len(store.Text(body, "alias")); n > 128 {
		return store.BadRequest("The length of the field alias is %d and must not exceed 128.", n)
	}
	block, _ := pem.Decode([]byte(store.Text(body, "certificate")))
	if block == nil {
		return store.BadRequest("The certificate is not in PEM format.")
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return store.BadRequest("The certificate is invalid: %s", err)
	}
	return nil
}

// checkCertificateUnused returns an error if a virtual service, pool or tunnel uses the certificate.
func checkCertificateUnused(s *cloud.Cloud, d *store.Object) error {
	for _, vs := range s.Store.Documents[ServicePath] {
		if store.RefID(vs.Body, "certificateRef") == d.ID() {
			return InUse("certificate", store.Text(d.Body, "alias"), "virtual service "+store.Text(vs.Body, "name"))
		}
	}
	for _, p := range s.Store.Documents[PoolPath] {
		if slices.Contains(Members(p.Body, "caCertificateRefs"), store.Bare(d.ID())) {
			return InUse("certificate", store.Text(d.Body, "alias"), "load balancer pool "+store.Text(p.Body, "name"))
		}
	}
	for _, t := range s.Store.Documents[IPsecPath] {
		if store.RefID(t.Body, "certificateRef") == d.ID() || store.RefID(t.Body, "caCertificateRef") == d.ID() {
			return InUse("certificate", store.Text(d.Body, "alias"), "IPSec VPN tunnel "+store.Text(t.Body, "name"))
		}
	}
	return nil
}

// SeedCertificates adds the certificates of the model to the library.
func SeedCertificates(s *cloud.Cloud, org *store.Org) {
	for _, c := range org.Certificates {
		s.Store.Documents.Add(CertificatePath, org.ID, map[string]any{
			"id":          store.URN("certificateLibraryItem", s.IDs.Named("certificateLibraryItem", org.ID+c.Alias)),
			"alias":       c.Alias,
			"description": "",
			"certificate": c.PEM,
			"privateKey":  c.Key,
		})
	}
}

func endpointID(body map[string]any) string {
	return "urn:vcloud:extensionEndpoint:" + store.Text(body, "vendor") + ":" + store.Text(body, "name") + ":" + store.Text(body,
		"version")
}

// checkDisabled returns an error if the document is still enabled.
func checkDisabled(_ *cloud.Cloud, d *store.Object) error {
	if on, _ := d.Body["enabled"].(bool); on {
		return store.BadRequest("The external endpoint %q must be disabled before it is deleted.", store.Text(d.Body, "name"))
	}
	return nil
}
