// SPDX-License-Identifier: Apache-2.0

// Package siteproxy sends the requests of a client to its site through the HTTP proxy that the environment configures.
// It distinguishes failures of that proxy from failures of the site. It is independent of the cloud, and never exposes
// the user name and password of a proxy.
package siteproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Use configures a transport to send requests through the proxy of the environment. If the proxy rejects the
// connection, requests fail with an [Error].
func Use(t *http.Transport) {
	t.Proxy = http.ProxyFromEnvironment
	t.OnProxyConnectResponse = func(_ context.Context, proxy *url.URL, connect *http.Request, got *http.Response) error {
		if got.StatusCode == http.StatusOK {
			return nil
		}
		return refusal(proxy, variable("https"), connect.Host, got.StatusCode)
	}
}

// An Error means that a proxy failed, not the site behind it. Its text is the same for the same failure.
type Error struct{ reason string }

// Error implements error.
func (e *Error) Error() string { return e.reason }

// Explain returns the failure of the proxy of a request, and reports whether the proxy caused err. err is the error of
// the request.
func Explain(request *http.Request, err error) (*Error, bool) {
	if known, ok := errors.AsType[*Error](err); ok {
		return known, true
	}
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "proxyconnect" {
		return nil, false
	}
	proxy, _ := http.ProxyFromEnvironment(request)
	if proxy == nil {
		return nil, false
	}
	return unreachable(proxy, variable(request.URL.Scheme), op.Err), true
}

// Refused returns an error if a response comes from a proxy that requires a user name and password. A request without
// TLS has no tunnel, so responses of its proxy look like responses of the site.
func Refused(request *http.Request, got *http.Response) error {
	if got.StatusCode != http.StatusProxyAuthRequired {
		return nil
	}
	proxy, _ := http.ProxyFromEnvironment(request)
	if proxy == nil {
		return nil
	}
	return refusal(proxy, variable(request.URL.Scheme), request.URL.Host, got.StatusCode)
}

// Via describes the proxy of a request, for error messages. It is empty if the request uses no proxy.
func Via(request *http.Request) string {
	if proxy, _ := http.ProxyFromEnvironment(request); proxy != nil {
		return " through proxy " + host(proxy)
	}
	if ignored(httpproxy.FromEnvironment(), request.URL) {
		return " without a proxy, because " + variable(request.URL.Scheme) + " is not a URL"
	}
	return ""
}

// variable returns the environment variable that configures the proxy for a URL scheme.
func variable(scheme string) string { return strings.ToUpper(scheme) + "_PROXY" }

// ignored reports whether the environment configures the proxy of a site with an invalid URL. Requests then use no
// proxy.
func ignored(env *httpproxy.Config, site *url.URL) bool {
	named := env.HTTPSProxy
	if site.Scheme == "http" {
		named = env.HTTPProxy
	}
	if named == "" {
		return false
	}
	readable := *env
	readable.HTTPProxy = "http://proxy.invalid"
	readable.HTTPSProxy = readable.HTTPProxy
	used, _ := readable.ProxyFunc()(site)
	got, _ := env.ProxyFunc()(site)
	return used != nil && got == nil
}

// host returns the host and port of a proxy.
func host(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}

// refusal returns the error of a proxy that responds with a status. name is the variable that configures the proxy.
func refusal(proxy *url.URL, name, target string, status int) *Error {
	what := fmt.Sprintf("cannot connect to %s", target)
	remedy := "check the log of the proxy, or add the host to NO_PROXY if it is reachable without the proxy"
	switch {
	case status == http.StatusProxyAuthRequired && proxy.User == nil:
		what = "requires a user name and a password"
		remedy = "add them to the URL in " + name + ", with special characters percent-encoded"
	case status == http.StatusProxyAuthRequired:
		what = "rejects the user name and password"
		remedy = "correct them in the URL in " + name + ", with special characters percent-encoded"
	case status == http.StatusForbidden:
		what = fmt.Sprintf("does not allow connections to %s", target)
		remedy = "allow them at the proxy, or add the host to NO_PROXY if it is reachable without the proxy"
	}
	return &Error{fmt.Sprintf("proxy %s %s (HTTP %d), so the request did not reach the site: %s",
		host(proxy), what, status, remedy)}
}

// unreachable returns the error of a proxy that cannot be reached. name is the variable that configures the proxy.
func unreachable(proxy *url.URL, name string, err error) *Error {
	what, remedy := cause(err)
	return &Error{fmt.Sprintf("proxy %s cannot be used, so the request did not reach the site: %s: %s",
		host(proxy), what, strings.ReplaceAll(remedy, "$", name))}
}

// cause describes the failure of a connection, without addresses and ports that change, and its remedy. The remedy
// contains $ in place of the variable that configures the proxy.
func cause(err error) (what, remedy string) {
	const (
		checkAddress = "check its host and port in $"
		checkScheme  = "if the proxy does not support TLS, use http:// in its URL in $"
	)
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "its name does not resolve in DNS", checkAddress
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "it does not respond", checkAddress
	}
	if isUntrusted(err) {
		return "its certificate is not trusted", "add its authority to the site's CA bundle; " + checkScheme
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not respond with TLS", checkScheme
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it closed the connection", checkAddress
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error(), checkAddress
}

func isUntrusted(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	return verification || authority || name
}
