// SPDX-License-Identifier: Apache-2.0

package cells

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Version is a release of VCD, named by its highest API version.
type Version string

// The simulated releases.
const (
	Version103  Version = "36.3" // VCD 10.3.3: one virtual service per address, no IP Spaces
	Version1042 Version = "37.2" // VCD 10.4.2
	Version104  Version = "37.3" // VCD 10.4.3
	Version105  Version = "38.1" // VCD 10.5.1
	Version106  Version = "39.0" // VCD 10.6
)

// Versions returns the simulated releases, oldest first.
func Versions() []Version {
	return []Version{Version103, Version1042, Version104, Version105, Version106}
}

// Builds maps the releases to VCD's own descriptions of them.
var Builds = map[string]string{
	"36.3": "10.3.3.19610875",
	"37.2": "10.4.2.21954589",
	"37.3": "10.4.3.22308993",
	"38.1": "10.5.1.22812800",
	"39.0": "10.6.0.24056521",
}

// Release returns the release of VCD with its build number.
func (v Version) Release() string { return Builds[string(v)] }

var apiVersions = []string{
	"35.0", "35.1", "35.2", "35.3", "36.0", "36.1", "36.2", "36.3", "37.0", "37.1", "37.2", "37.3", "38.0", "38.1",
	"39.0",
}

// oldest is the lowest API version that each release serves.
var oldest = map[Version]string{
	Version103:  "35.0",
	Version1042: "35.0",
	Version104:  "35.0",
	Version105:  "36.0",
	Version106:  "37.0",
}

// current is the lowest API version that each release does not mark as deprecated. The releases since 10.4 were not
// observed.
var current = map[Version]string{
	Version103:  "36.0",
	Version1042: "37.0",
	Version104:  "37.0",
	Version105:  "37.0",
	Version106:  "37.0",
}

// Deprecates reports whether the release marks an API version as deprecated.
func (v Version) Deprecates(version string) bool { return version < current[v] }

func (v Version) list() ([]string, error) {
	low, ok := oldest[v]
	if !ok {
		return nil, fmt.Errorf("API version %q is not one of %s", v, join(Versions(), ", "))
	}
	return apiVersions[slices.Index(apiVersions, low) : slices.Index(apiVersions, string(v))+1], nil
}

func join(versions []Version, separator string) string {
	var out []string
	for _, v := range versions {
		out = append(out, string(v))
	}
	return strings.Join(out, separator)
}

var acceptVersion = regexp.MustCompile(`version=([0-9a-z.\-]+)`)

// Negotiate returns the API version that a request selects, or a 406 error.
func (c *Cell) Negotiate(h http.Header) (string, error) {
	requested := ""
	served := c.Served()
	for _, accept := range h.Values("Accept") {
		for _, m := range acceptVersion.FindAllStringSubmatch(accept, -1) {
			if slices.Contains(served, m[1]) {
				return m[1], nil
			}
			requested = m[1]
		}
	}
	if requested == "" {
		return "", store.Refuse(http.StatusNotAcceptable, "NOT_ACCEPTABLE",
			"The request has invalid accept header: API version is not specified.")
	}
	return "", store.Refuse(http.StatusNotAcceptable, "NOT_ACCEPTABLE",
		"The request has invalid accept header: Unknown API version %s.", requested)
}
