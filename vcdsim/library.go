package vcdsim

import (
	"crypto/x509"
	"encoding/pem"
)

func libraryCollections() []*collection {
	alias := []string{"alias"}
	certificates := collection{
		kind: "certificateLibraryItem", right: "CERTIFICATE_LIBRARY", unique: alias, required: []string{"alias", "certificate"},
		hidden: []string{"privateKey", "privateKeyPassphrase"}, fixed: []string{"certificate"},
		defaults: map[string]any{"description": ""}, check: checkCertificate,
	}
	certificates.path = "1.0.0/ssl/certificateLibrary"
	name := []string{"name", "vendor", "version"}
	return []*collection{
		&certificates,
		{
			path: "1.0.0/externalEndpoints", kind: "extensionEndpoint", right: "EXTERNAL_ENDPOINT", provider: true, unique: name, required: name,
			fixed: name, newID: endpointID, free: disabled,
		},
		{path: "1.0.0/apiFilters", kind: "apiFilter", right: "API_FILTER", provider: true},
	}
}

// checkCertificate refuses what is not a certificate.
func checkCertificate(_ *request, body map[string]any) error {
	block, _ := pem.Decode([]byte(text(body, "certificate")))
	if block == nil {
		return badRequest("The certificate is not in PEM format.")
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return badRequest("The certificate is invalid: %s", err)
	}
	return nil
}

func endpointID(body map[string]any) string {
	return "urn:vcloud:extensionEndpoint:" + text(body, "vendor") + ":" + text(body, "name") + ":" + text(body, "version")
}

// disabled refuses to delete what is still in use.
func disabled(_ *request, d *document) error {
	if on, _ := d.body["enabled"].(bool); on {
		return badRequest("The external endpoint %q must be disabled before it is deleted.", text(d.body, "name"))
	}
	return nil
}
