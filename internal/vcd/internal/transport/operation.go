// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// QueryPath is the path of the query service.
const QueryPath = "/api/query"

var urnSegment = regexp.MustCompile(`urn:vcloud:[^/]+`)

// Operation names a request by its method and path template. It removes IDs and the organization's name, so that there
// are only as many names as kinds of requests.
func Operation(method string, u *url.URL) string {
	path := urnSegment.ReplaceAllString(u.Path, "{id}")
	path = urn.UUIDPattern.ReplaceAllString(path, "{id}")
	path = strings.TrimSuffix(path, "/")
	if rest, ok := strings.CutPrefix(path, "/oauth/tenant/"); ok {
		if _, endpoint, found := strings.Cut(rest, "/"); found {
			path = "/oauth/tenant/{org}/" + endpoint
		}
	}
	if path == QueryPath {
		path += "?type=" + queryType(u.RawQuery)
	}
	return method + " " + path
}

// queryType returns the type of a query. [url.URL.Query] would drop parameters that contain a semicolon.
func queryType(rawQuery string) string {
	for part := range strings.SplitSeq(rawQuery, "&") {
		if value, ok := strings.CutPrefix(part, "type="); ok {
			return value
		}
	}
	return ""
}
