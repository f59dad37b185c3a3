// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

// fixtureLabel is the label of Services whose value is the name of their fixture.
const fixtureLabel = "ccm.test/fixture"

// view serves a proxy to the API server that lists only the Services of a fixture. All controllers use the same
// finalizer, so the controllers of several fixtures would otherwise remove it from each other's Services.
func view(s *stack.Stack, fixture string) (*httptest.Server, error) {
	target, err := url.Parse(s.RESTConfig().Host)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.RESTConfig().CAData)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.Out.Method == http.MethodGet && r.Out.URL.Path == "/api/v1/services" {
				query := r.Out.URL.Query()
				query.Set("labelSelector", fixtureLabel+"="+fixture)
				r.Out.URL.RawQuery = query.Encode()
			}
		},
		FlushInterval: -1, // Watches are streams.
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			MaxIdleConnsPerHost: 50,
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return httptest.NewTLSServer(proxy), nil // Clients send tokens only over TLS.
}
