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

// A Certificate is an entry of the organization's certificate library; its Name is its alias. Private keys are never
// shown.
type Certificate struct {
	Ref

	Description string // carries the ownership marker
}

// A CertificateSpec is a new entry.
type CertificateSpec struct {
	Alias       string
	Description string
	Certificate []byte // PEM, the certificate first and then those of its issuers
	PrivateKey  []byte // PEM, not encrypted
}

// String keeps the key out of everything that prints a value.
func (CertificateSpec) String() string { return transport.Redacted }

// GoString keeps the key out of everything that prints a value in detail.
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

// Certificates lists the certificate library of the organization. It takes the right "Certificate Library: View" (VCD
// 10.2).
func (b *Balancers) Certificates(ctx context.Context) ([]Certificate, error) {
	l := api.Listing{Path: certificatesPath, What: "certificates", Sort: "alias"}
	return api.ListAs(ctx, b.client, l, (*wireCertificate).certificate)
}

// CreateCertificate puts a certificate with its key into the library, at once. [ErrConflict] means that the alias is
// taken. It takes the right "Certificate Library: Manage".
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

// DeleteCertificate removes an entry of the library, at once. Nothing may use it.
func (b *Balancers) DeleteCertificate(ctx context.Context, id string) error {
	_, err := b.client.Do(ctx, api.Call{Method: http.MethodDelete, Path: certificatesPath + "/" + url.PathEscape(id), JSON: true})
	return failure.Wrap(err, "deleting certificate", id)
}
