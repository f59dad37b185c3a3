// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
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
	if n := len(text(body, "alias")); n > 128 {
		return badRequest("The length of the field alias is %d and must not exceed 128.", n)
	}
	block, _ := pem.Decode([]byte(text(body, "certificate")))
	if block == nil {
		return badRequest("The certificate is not in PEM format.")
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return badRequest("The certificate is invalid: %s", err)
	}
	return nil
}

// freeCertificate refuses to delete what a virtual service or pool uses.
func freeCertificate(r *request, d *document) error {
	for _, vs := range r.sim.store.Documents[servicePath] {
		if refID(vs.Body, "certificateRef") == d.id() {
			return inUse("certificate", text(d.Body, "alias"), "virtual service "+text(vs.Body, "name"))
		}
	}
	for _, p := range r.sim.store.Documents[poolPath] {
		if slices.Contains(members(p.Body, "caCertificateRefs"), bare(d.id())) {
			return inUse("certificate", text(d.Body, "alias"), "load balancer pool "+text(p.Body, "name"))
		}
	}
	return nil
}

// seedCertificates puts the certificates of the model into the library.
func seedCertificates(s *Simulator, org *Org) {
	for _, c := range org.Certificates {
		s.store.Documents.add(certificatePath, org.ID, map[string]any{
			"id":          URN("certificateLibraryItem", s.ids.named("certificateLibraryItem", org.ID+c.Alias)),
			"alias":       c.Alias,
			"description": "",
			"certificate": c.PEM,
			"privateKey":  c.Key,
		})
	}
}

func endpointID(body map[string]any) string {
	return "urn:vcloud:extensionEndpoint:" + text(body, "vendor") + ":" + text(body, "name") + ":" + text(body,
		"version")
}

// disabled refuses to delete what is still in use.
func disabled(_ *request, d *document) error {
	if on, _ := d.Body["enabled"].(bool); on {
		return badRequest("The external endpoint %q must be disabled before it is deleted.", text(d.Body, "name"))
	}
	return nil
}
