// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// Negotiate returns the API version for requests, negotiated with one request for all sessions of the site. It ignores
// the LoginUrl that VCD offers with each version, because credentials go to the configured site only.
func (t *Transport) Negotiate(ctx context.Context) (string, error) {
	s := t.Site
	if version := s.AgreedVersion(); version != "" {
		return version, nil
	}
	ctx, cancel := s.Deadline(ctx, min(versionsTimeout, t.Timeout))
	defer cancel()
	req, err := s.NewRequest(ctx, http.MethodGet, "/api/versions", "text/xml, application/*+xml", nil)
	if err != nil {
		return "", err
	}
	got, err := t.Send(req)
	if status, ok := errors.AsType[*failure.StatusError](err); ok && !errors.Is(err, failure.ErrThrottled) {
		// The response does not come from a working VCD.
		err = failure.Unavailable(s.Base + " answers: " + status.Error())
	}
	if err != nil {
		return "", fmt.Errorf("requesting the API versions: %w", err)
	}
	version, err := s.agree(got.Body)
	if err != nil {
		return "", fmt.Errorf("negotiating an API version with %s: %w", s.Base, err)
	}
	return version, nil
}

// Trusted returns the reason why the certificate of the site is no longer trusted, or nil.
func (t *Transport) Trusted(ctx context.Context) error {
	refused, due := t.trust.refused(t.Site.Clock.Now())
	if !due {
		return refused
	}
	req, err := t.Site.NewRequest(ctx, http.MethodGet, "/api/versions", "text/xml, application/*+xml", nil)
	if err != nil {
		return err
	}
	if _, err = t.Send(req); errors.Is(err, failure.ErrTLS) {
		return err
	}
	return nil // later requests report any other error
}
