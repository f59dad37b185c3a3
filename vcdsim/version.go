// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A Version is a release of VCD, named by its highest API version.
type Version string

// The releases that are simulated.
const (
	Version103  Version = "36.3" // VCD 10.3.3: an address is one virtual service's only, and there are no IP Spaces
	Version1042 Version = "37.2" // VCD 10.4.2
	Version104  Version = "37.3" // VCD 10.4.3
	Version105  Version = "38.1" // VCD 10.5.1
	Version106  Version = "39.0" // VCD 10.6
)

// versions are the releases that are simulated, oldest first.
func versions() []Version {
	return []Version{Version103, Version1042, Version104, Version105, Version106}
}

// Release is the release of VCD, with its build.
func (v Version) Release() string { return builds[string(v)] }

var apiVersions = []string{
	"35.0", "35.1", "35.2", "35.3", "36.0", "36.1", "36.2", "36.3", "37.0", "37.1", "37.2", "37.3", "38.0", "38.1",
	"39.0",
}

// oldest is the lowest version each release still serves.
var oldest = map[Version]string{
	Version103:  "35.0",
	Version1042: "35.0",
	Version104:  "35.0",
	Version105:  "36.0",
	Version106:  "37.0",
}

func (v Version) list() ([]string, error) {
	low, ok := oldest[v]
	if !ok {
		return nil, fmt.Errorf("API version %q is not one of %s", v, join(versions(), ", "))
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

// negotiate finds the API version a request asks for, or refuses with 406.
func (c *Cell) negotiate(h http.Header) (string, error) {
	asked := ""
	served := c.served()
	for _, accept := range h.Values("Accept") {
		for _, m := range acceptVersion.FindAllStringSubmatch(accept, -1) {
			if slices.Contains(served, m[1]) {
				return m[1], nil
			}
			asked = m[1]
		}
	}
	if asked == "" {
		return "", store.Refuse(http.StatusNotAcceptable, "NOT_ACCEPTABLE",
			"The request has invalid accept header: API version is not specified.")
	}
	return "", store.Refuse(http.StatusNotAcceptable, "NOT_ACCEPTABLE",
		"The request has invalid accept header: Unknown API version %s.", asked)
}

// newer takes fields out of an answer to a client that speaks a version before they were added.
func (r *request) newer(version string, out map[string]any, fields ...string) {
	if r.version >= version {
		return
	}
	for _, f := range fields {
		delete(out, f)
	}
}

// highestVersion is the highest API version of the cell that answers.
func highestVersion(r *request) string {
	served := r.cell.served()
	return served[len(served)-1]
}

func getVersions(r *request) (*response, error) {
	n := xmltree.New("SupportedVersions", xmltree.A("xmlns", "http://www.vmware.com/vcloud/versions"))
	for _, v := range r.cell.served() {
		n.Add(xmltree.New("VersionInfo", xmltree.A("deprecated", v < "37.0"),
			xmltree.T("Version", v),
			xmltree.T("LoginUrl", r.site.Base()+"/cloudapi/1.0.0/sessions"),
			xmltree.T("ProviderLoginUrl", r.site.Base()+"/cloudapi/1.0.0/sessions/provider")))
	}
	return &response{status: http.StatusOK, xml: n, contentType: "text/xml"}, nil
}

// younger are operations that came with an API version: what they begin with.
var younger = []struct{ under, since string }{
	{"/cloudapi/1.0.0/ipSpaces", "37.1"},
	{"/cloudapi/1.0.0/ipSpaceUplinks", "37.1"},
	{"/cloudapi/1.0.0/edgeGateways/routing/staticRoutes", "37.0"},
	{"/cloudapi/1.0.0/serviceAccounts", "37.0"},
	{"/cloudapi/2.0.0/edgeGateways", "38.1"},
	{"/cloudapi/1.0.0/tokens", "36.1"},
}

// served refuses what the API version of the request does not have yet.
func (r *request) served() error {
	_, path, _ := strings.Cut(r.op, " ")
	for _, y := range younger {
		if strings.HasPrefix(path, y.under) && r.version < y.since {
			return store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s in API version %s.",
				r.URL.Path, r.version)
		}
	}
	return nil
}
