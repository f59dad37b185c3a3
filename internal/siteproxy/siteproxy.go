// SPDX-License-Identifier: Apache-2.0

// Package siteproxy sends the requests of a client to its site by the HTTP proxy that the environment names, and
// tells failures of that proxy from failures of the site. It is independent of the cloud, and never shows the
// user name and the password of a proxy.
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

// Use makes a transport send requests by the proxy that the environment names. Where the proxy refuses to connect,
// requests end with an [Error].
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

// Explain returns what the proxy of a request did wrong if err, with which the request ended, is its failure.
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

// Refused returns an error if an answer is a proxy's, which wants a user name and a password: a request without TLS has
// no tunnel, and gets the answers of its proxy as if they were the site's.
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

// Via says by which proxy a request goes, for errors of it; empty: by none.
func Via(request *http.Request) string {
	if proxy, _ := http.ProxyFromEnvironment(request); proxy != nil {
		return " through proxy " + host(proxy)
	}
	if ignored(httpproxy.FromEnvironment(), request.URL) {
		return " without a proxy, because " + variable(request.URL.Scheme) + " is not a URL"
	}
	return ""
}

// variable is the variable of the environment that names the proxy of requests.
func variable(scheme string) string { return strings.ToUpper(scheme) + "_PROXY" }

// ignored reports whether the environment names a proxy for a site by something that cannot be read. Requests then go
// without.
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

// host returns host and port of a proxy.
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

// refusal is the error of a proxy, which the variable name names, that answers with a status.
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

// unreachable is the error of a proxy, which the variable name names, that there is no connection to.
func unreachable(proxy *url.URL, name string, err error) *Error {
	what, remedy := cause(err)
	return &Error{fmt.Sprintf("proxy %s cannot be used, so the request did not reach the site: %s: %s",
		host(proxy), what, strings.ReplaceAll(remedy, "$", name))}
}

// cause says what is wrong with a connection, without addresses and ports that change, and what to do, with $ for the
// variable that names the proxy.
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
