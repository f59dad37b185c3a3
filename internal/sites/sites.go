// SPDX-License-Identifier: Apache-2.0

// Package sites compares addresses of VMware Cloud Director sites in specs.
package sites

import (
	"cmp"
	"net"
	"net/url"
	"strings"
)

// Same reports whether two addresses belong to the same site.
func Same(a, b string) bool { return Normal(a) == Normal(b) }

// Normal returns the host and port of a site, for comparisons. It returns the empty string if the address is not a
// valid https URL.
func Normal(site string) string {
	u, err := url.Parse(strings.TrimSuffix(site, "/"))
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" ||
		u.Fragment != "" {
		return ""
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), "443"))
}
