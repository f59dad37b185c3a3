package vcd

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// An Exchange is one call as it may be shown to people: without credentials and without bodies, which carry bootstrap
// data.
type Exchange struct {
	Operation string
	Method    string
	URL       string
	Header    http.Header
	Status    int // 0: no answer
	Sent      int // bytes of the request's body
	Received  int // bytes of the answer's body
	Took      time.Duration
	Err       error
}

const redacted = "REDACTED"

// secretHeaders carry credentials.
var secretHeaders = []string{
	"Authorization", "Cookie", "Set-Cookie", "Proxy-Authorization",
	"X-Vcloud-Authorization", "X-Vmware-Vcloud-Access-Token", "Api-Token",
}

// secretParameters of a query string carry credentials.
var secretParameters = []string{"refresh_token", "access_token", "token", "password"}

// RedactHeader returns a copy of h without credentials.
func RedactHeader(h http.Header) http.Header {
	clean := h.Clone()
	for _, name := range secretHeaders {
		if clean.Get(name) != "" {
			clean.Set(name, redacted)
		}
	}
	return clean
}

// RedactURL returns u without user, password and secret parameters.
func RedactURL(u *url.URL) string {
	clean := *u
	clean.User = nil
	parts := strings.Split(clean.RawQuery, "&")
	for i, part := range parts {
		if name, _, ok := strings.Cut(part, "="); ok && slices.Contains(secretParameters, strings.ToLower(name)) {
			parts[i] = name + "=" + redacted
		}
	}
	clean.RawQuery = strings.Join(parts, "&")
	return clean.String()
}
