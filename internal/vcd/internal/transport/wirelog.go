// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// An Exchange is one call as it may be logged: without credentials and without bodies, which carry bootstrap
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

// Redacted stands in the wire log where a secret was.
const Redacted = "REDACTED"

// openHeaders are known to carry no credentials. Whatever else there is may.
var openHeaders = []string{
	"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "If-Match", "User-Agent",
	"X-Vmware-Vcloud-Client-Request-Id", "X-Vmware-Vcloud-Tenant-Context", "X-Vmware-Vcloud-Token-Type",
}

// secretParameters of a query string carry credentials.
var secretParameters = []string{"refresh_token", "access_token", "token", "password"}

// redactHeader returns a copy of h in which only headers that carry no credentials have their values.
func redactHeader(h http.Header) http.Header {
	clean := h.Clone()
	for name := range clean {
		if !slices.Contains(openHeaders, http.CanonicalHeaderKey(name)) {
			clean[name] = []string{Redacted}
		}
	}
	return clean
}

// redactURL returns u without user, password and secret parameters.
func redactURL(u *url.URL) string {
	clean := *u
	clean.User = nil
	parts := strings.Split(clean.RawQuery, "&")
	for i, part := range parts {
		if name, _, ok := strings.Cut(part, "="); ok && slices.Contains(secretParameters, strings.ToLower(name)) {
			parts[i] = name + "=" + Redacted
		}
	}
	clean.RawQuery = strings.Join(parts, "&")
	return clean.String()
}
