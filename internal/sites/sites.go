// SPDX-License-Identifier: Apache-2.0

// Package sites compares the addresses of sites of VMware Cloud Director, as specs have them.
package sites

import (
	"cmp"
	"net"
	"net/url"
	"strings"
)

// Same reports whether two addresses are of one site.
func Same(a, b string) bool { return Normal(a) == Normal(b) }

// Normal returns the host and port of a site, by which sites are compared; nothing for what is no https URL.
func Normal(site string) string {
	u, err := url.Parse(strings.TrimSuffix(site, "/"))
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" ||
		u.Fragment != "" {
		return ""
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), "443"))
}
