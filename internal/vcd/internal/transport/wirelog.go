// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// An Exchange is a request and its response as they may be logged: without credentials, and without bodies, which
// contain bootstrap data.
type Exchange struct {
	Operation string
	Method    string
	URL       string
	Header    http.Header
	Status    int // 0: no response
	Sent      int // size of the request body, in bytes
	Received  int // size of the response body, in bytes
	Took      time.Duration
	Err       error
}

// Redacted replaces secrets in the wire log.
const Redacted = "REDACTED"

// openHeaders contain no credentials. All other headers might.
var openHeaders = []string{
	"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "If-Match", "User-Agent",
	"X-Vmware-Vcloud-Client-Request-Id", "X-Vmware-Vcloud-Tenant-Context", "X-Vmware-Vcloud-Token-Type",
}

// secretParameters are the parameters of a query string that contain credentials.
var secretParameters = []string{"refresh_token", "access_token", "token", "password"}

// redactHeader returns a copy of h without the values of headers that might contain credentials.
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
