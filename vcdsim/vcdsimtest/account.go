// SPDX-License-Identifier: Apache-2.0

package vcdsimtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// ServiceAccount creates a service account with a role in the organization acme of [vcdsim.K8sTenant], as its
// administrator would, and returns its first token. VCD replaces the token at each login.
func ServiceAccount(tb testing.TB, sim *vcdsim.Simulator, name, role string) string {
	tb.Helper()
	token, err := newRegistrar(sim).register(tb.Context(), name, role)
	if err != nil {
		tb.Fatalf("making service account %s: %v", name, err)
	}
	return token
}

// A registrar creates service accounts.
type registrar struct {
	site   string
	client *http.Client
	bearer string
}

func newRegistrar(sim *vcdsim.Simulator) *registrar {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(sim.CA())
	return &registrar{
		site: sim.URL(),
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		}},
	}
}

// register runs the whole flow: it registers the account, requests its token, grants it, and retrieves it.
func (r *registrar) register(ctx context.Context, name, role string) (string, error) {
	const tenant, kind = "/oauth/tenant/acme", "application/x-www-form-urlencoded"
	account, err := r.post(ctx, tenant+"/register", "application/json", fmt.Sprintf(
		`{"client_name":%q,"software_id":"e0b7e8b8-7b6c-4f8c-8f31-000000000001","scope":"urn:vcloud:role:%s"}`, name,
		url.PathEscape(role)))
	if err != nil {
		return "", err
	}
	id := account["client_id"]
	device, err := r.post(ctx, tenant+"/device_authorization", kind, url.Values{"client_id": {id}}.Encode())
	if err != nil {
		return "", err
	}
	if _, err := r.post(ctx, "/cloudapi/1.0.0/deviceLookup/grant", "application/json",
		fmt.Sprintf(`{"userCode":%q}`, device["user_code"])); err != nil {
		return "", err
	}
	granted, err := r.post(ctx, tenant+"/token", kind, url.Values{
		"grant_type":  {"urn:ietf:params:oauth:grant-type:device_code"},
		"client_id":   {id},
		"device_code": {device["device_code"]},
	}.Encode())
	return granted["refresh_token"], err
}

// login creates the session of the registrar.
func (r *registrar) login(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.site+"/cloudapi/1.0.0/sessions", http.NoBody)
	if err != nil {
		return err
	}
	req.SetBasicAuth("admin@acme", "password")
	header, _, err := r.do(req)
	r.bearer = header.Get("X-Vmware-Vcloud-Access-Token")
	return err
}

// post sends a request with a body, and returns the string values of the response.
func (r *registrar) post(ctx context.Context, path, kind, body string) (map[string]string, error) {
	if r.bearer == "" {
		if err := r.login(ctx); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.site+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "Bearer "+r.bearer)
	_, answer, err := r.do(req)
	if err != nil || len(strings.TrimSpace(string(answer))) == 0 {
		return nil, err
	}
	values := map[string]any{}
	if err := json.Unmarshal(answer, &values); err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	texts := map[string]string{}
	for key, value := range values {
		if text, ok := value.(string); ok {
			texts[key] = text
		}
	}
	return texts, nil
}

func (r *registrar) do(req *http.Request) (http.Header, []byte, error) {
	req.Header.Set("Accept", "application/json;version=37.0")
	res, err := r.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", req.Method, req.URL.Path, res.Status, answer)
	}
	return res.Header, answer, err
}
