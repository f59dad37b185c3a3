// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"crypto/x509"
	"encoding/pem"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const certificatePath = "1.0.0/ssl/certificateLibrary"

func libraryCollections() []*collection {
	alias := []string{"alias"}
	certificates := collection{
		kind:     "certificateLibraryItem",
		right:    "CERTIFICATE_LIBRARY",
		unique:   alias,
		required: []string{"alias", "certificate"},
		hidden:   []string{"privateKey", "privateKeyPassphrase"},
		fixed:    []string{"certificate"},
		defaults: map[string]any{"description": ""},
		check:    checkCertificate,
		free:     freeCertificate,
	}
	certificates.path = certificatePath
	name := []string{"name", "vendor", "version"}
	return []*collection{
		&certificates,
		{
			path:     "1.0.0/externalEndpoints",
			kind:     "extensionEndpoint",
			right:    "EXTERNAL_ENDPOINT",
			provider: true,
			unique:   name,
			required: name,
			fixed:    name,
			newID:    endpointID,
			free:     disabled,
		},
		{path: "1.0.0/apiFilters", kind: "apiFilter", right: "API_FILTER", provider: true},
	}
}

// checkCertificate refuses a text that is not a certificate.
func checkCertificate(_ *request, body map[string]any) error {
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

// freeCertificate refuses to delete what a virtual service or pool uses.
func freeCertificate(r *request, d *store.Object) error {
	for _, vs := range r.cloud.store.Documents[servicePath] {
		if store.RefID(vs.Body, "certificateRef") == d.ID() {
			return inUse("certificate", store.Text(d.Body, "alias"), "virtual service "+store.Text(vs.Body, "name"))
		}
	}
	for _, p := range r.cloud.store.Documents[poolPath] {
		if slices.Contains(members(p.Body, "caCertificateRefs"), store.Bare(d.ID())) {
			return inUse("certificate", store.Text(d.Body, "alias"), "load balancer pool "+store.Text(p.Body, "name"))
		}
	}
	return nil
}

// seedCertificates puts the certificates of the model into the library.
func seedCertificates(s *cloud, org *store.Org) {
	for _, c := range org.Certificates {
		s.store.Documents.Add(certificatePath, org.ID, map[string]any{
			"id":          store.URN("certificateLibraryItem", s.ids.Named("certificateLibraryItem", org.ID+c.Alias)),
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

// disabled refuses to delete what is still in use.
func disabled(_ *request, d *store.Object) error {
	if on, _ := d.Body["enabled"].(bool); on {
		return store.BadRequest("The external endpoint %q must be disabled before it is deleted.", store.Text(d.Body, "name"))
	}
	return nil
}
