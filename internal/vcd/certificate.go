// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const certificatesPath = "/cloudapi/1.0.0/ssl/certificateLibrary"

// A Certificate is an entry in the certificate library of the organization. Its Name is its alias. Private keys are
// never returned.
type Certificate struct {
	Ref

	Description string // contains the ownership marker
}

// A CertificateSpec describes a new certificate.
type CertificateSpec struct {
	Alias       string
	Description string
	Certificate []byte // PEM: the certificate, followed by those of its issuers
	PrivateKey  []byte // PEM, unencrypted
}

// String keeps the key out of printed values.
func (CertificateSpec) String() string { return transport.Redacted }

// GoString keeps the key out of values printed with %#v.
func (CertificateSpec) GoString() string { return transport.Redacted }

type wireCertificate struct {
	ID          string `json:"id"`
	Alias       string `json:"alias"`
	Description string `json:"description"`
}

func (w wireCertificate) Key() string { return w.ID }

func (w wireCertificate) certificate() Certificate {
	return Certificate{Ref: Ref{ID: w.ID, Name: w.Alias}, Description: w.Description}
}

// Certificates lists the certificate library of the organization. It requires the right "Certificate Library: View"
// (VCD 10.2).
func (b *Balancers) Certificates(ctx context.Context) ([]Certificate, error) {
	l := api.Listing{Path: certificatesPath, What: "certificates", Sort: "alias"}
	return api.ListAs(ctx, b.client, l, (*wireCertificate).certificate)
}

// CreateCertificate adds a certificate with its key to the library, without a task. [ErrConflict] means that the alias
// is in use. It requires the right "Certificate Library: Manage".
func (b *Balancers) CreateCertificate(ctx context.Context, spec CertificateSpec) (Certificate, error) {
	got, err := b.client.Do(ctx, api.Call{
		Method: http.MethodPost,
		Path:   certificatesPath,
		JSON:   true,
		Content: map[string]string{
			"alias":       spec.Alias,
			"description": spec.Description,
			"certificate": string(spec.Certificate),
			"privateKey":  string(spec.PrivateKey),
		},
	})
	var made wireCertificate
	if err == nil {
		err = wire.DecodeJSON(got.Body, &made)
	}
	return made.certificate(), failure.Wrap(err, "importing certificate", spec.Alias)
}

// DeleteCertificate removes an entry from the library, without a task. It must not be in use.
func (b *Balancers) DeleteCertificate(ctx context.Context, id string) error {
	_, err := b.client.Do(ctx, api.Call{Method: http.MethodDelete, Path: certificatesPath + "/" + url.PathEscape(id), JSON: true})
	return failure.Wrap(err, "deleting certificate", id)
}
