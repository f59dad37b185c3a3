// SPDX-License-Identifier: Apache-2.0

package siteproxy_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteproxy"
)

// requested is the environment variable with the site that TestProxyFailuresAreExplained requests in its child process.
// It is not set in the parent process.
const requested = "SITEPROXY_REQUESTED"

// canary is in the user names and passwords of proxies. No message may contain it.
const canary = "canary"

// TestProxyFailuresAreExplained runs itself in a child process for each case, because each process reads the proxy
// variables only once.
func TestProxyFailuresAreExplained(t *testing.T) {
	if site := os.Getenv(requested); site != "" {
		printFailure(t, site)
		return
	}
	https := httptest.NewTLSServer(nil)
	t.Cleanup(https.Close)
	answers := func(status int) string {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(proxy.Close)
		return proxy.Listener.Addr().String()
	}
	gone := func() string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		defer func() { _ = listener.Close() }()
		return listener.Addr().String()
	}
	const untouched = ", so the request did not reach the site: "
	tests := []struct {
		name  string
		proxy string // host and port
		url   string // with ADDRESS in place of the proxy
		site  string // https://vcd.corp.example if empty
		want  string // with ADDRESS in place of the proxy
	}{
		{
			name:  "an incorrect password",
			proxy: answers(http.StatusProxyAuthRequired),
			url:   "http://canary:canary@ADDRESS",
			want: "proxy ADDRESS rejects the user name and password (HTTP 407)" + untouched +
				"correct them in the URL in HTTPS_PROXY, with special characters percent-encoded",
		},
		{
			name:  "a missing password",
			proxy: answers(http.StatusProxyAuthRequired),
			url:   "http://ADDRESS",
			want: "proxy ADDRESS requires a user name and a password (HTTP 407)" + untouched +
				"add them to the URL in HTTPS_PROXY, with special characters percent-encoded",
		},
		{
			name:  "an incorrect password if the site has no TLS",
			proxy: answers(http.StatusProxyAuthRequired),
			url:   "http://canary:canary@ADDRESS",
			site:  "http://cloud.corp.example",
			want: "proxy ADDRESS rejects the user name and password (HTTP 407)" + untouched +
				"correct them in the URL in HTTP_PROXY, with special characters percent-encoded",
		},
		{
			name:  "a target that the proxy denies",
			proxy: answers(http.StatusForbidden),
			url:   "http://canary:canary@ADDRESS",
			want: "proxy ADDRESS does not allow connections to vcd.corp.example:443 (HTTP 403)" + untouched +
				"allow them at the proxy, or add the host to NO_PROXY if it is reachable without the proxy",
		},
		{
			name:  "a target that the proxy cannot reach",
			proxy: answers(http.StatusBadGateway),
			url:   "http://canary:canary@ADDRESS",
			want: "proxy ADDRESS cannot connect to vcd.corp.example:443 (HTTP 502)" + untouched +
				"check the log of the proxy, or add the host to NO_PROXY if it is reachable without the proxy",
		},
		{
			name:  "a nonexistent proxy",
			proxy: gone(),
			url:   "http://canary:canary@ADDRESS",
			want:  "proxy ADDRESS cannot be used" + untouched + "connection refused: check its host and port in HTTPS_PROXY",
		},
		{
			name:  "a proxy with a certificate of an unknown authority",
			proxy: https.Listener.Addr().String(),
			url:   "https://canary:canary@ADDRESS",
			want:  "proxy ADDRESS cannot be used" + untouched + "its certificate is not trusted: add its authority to the site's CA bundle; if the proxy does not support TLS, use http:// in its URL in HTTPS_PROXY",
		},
		{
			name:  "a proxy without TLS behind an https URL",
			proxy: answers(http.StatusOK),
			url:   "https://canary:canary@ADDRESS",
			want:  "proxy ADDRESS cannot be used" + untouched + "it does not respond with TLS: if the proxy does not support TLS, use http:// in its URL in HTTPS_PROXY",
		},
		{
			name: "an invalid URL",
			url:  "http://canary:canary%zz@proxy.example.com:3128",
			want: "no failure of a proxy, without a proxy, because HTTPS_PROXY is not a URL",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			url := strings.ReplaceAll(tt.url, "ADDRESS", tt.proxy)
			again := exec.Command(os.Args[0], "-test.v", "-test.run=^TestProxyFailuresAreExplained$")
			again.Env = append(os.Environ(), requested+"="+siteOr(tt.site), "HTTPS_PROXY="+url, "HTTP_PROXY="+url,
				"NO_PROXY=")

			out, err := again.CombinedOutput()

			g.Expect(err).NotTo(HaveOccurred(), string(out))
			g.Expect(string(out)).To(ContainSubstring("<" + strings.ReplaceAll(tt.want, "ADDRESS", tt.proxy) + ">"))
			g.Expect(string(out)).NotTo(ContainSubstring(canary))
		})
	}
}

func siteOr(site string) string {
	if site == "" {
		return "https://vcd.corp.example"
	}
	return site
}

// printFailure requests a site, and prints the explanation of the failure.
func printFailure(t *testing.T, site string) {
	t.Helper()
	g := NewWithT(t)
	transport := &http.Transport{}
	siteproxy.Use(transport)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	got, err := transport.RoundTrip(request)
	if err == nil {
		defer func() { _ = got.Body.Close() }()
		t.Logf("<%v>", siteproxy.Refused(request, got))
		return
	}
	if failure, ok := siteproxy.Explain(request, err); ok {
		t.Logf("<%v>", failure)
		return
	}
	t.Logf("<no failure of a proxy,%s>", siteproxy.Via(request))
}
