// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// HighestVersion returns the highest API version of the cell that serves the request.
func HighestVersion(r *Request) string {
	served := r.Cell.Served()
	return served[len(served)-1]
}

// GetVersions responds with the API versions that the cell serves.
func GetVersions(r *Request) (*Response, error) {
	release := cells.Version(HighestVersion(r))
	n := xmltree.New("SupportedVersions", xmltree.A("xmlns", "http://www.vmware.com/vcloud/versions"))
	for _, v := range r.Cell.Served() {
		n.Add(xmltree.New("VersionInfo", xmltree.A("deprecated", release.Deprecates(v)),
			xmltree.T("Version", v),
			xmltree.T("LoginUrl", r.Site.Base()+"/cloudapi/1.0.0/sessions"),
			xmltree.T("ProviderLoginUrl", r.Site.Base()+"/cloudapi/1.0.0/sessions/provider")))
	}
	return &Response{Status: http.StatusOK, XML: n, ContentType: "text/xml"}, nil
}

// introduced lists the API versions that introduced operations, by prefix of the operation.
var introduced = []struct{ under, since string }{
	{"/cloudapi/1.0.0/ipSpaces", "37.1"},
	{"/cloudapi/1.0.0/ipSpaceUplinks", "37.1"},
	{"/cloudapi/1.0.0/edgeGateways/routing/staticRoutes", "37.0"},
	{"/cloudapi/1.0.0/serviceAccounts", "37.0"},
	{"/cloudapi/2.0.0/edgeGateways", "38.1"},
	{"/cloudapi/1.0.0/tokens", "36.1"},
	{"/cloudapi/1.0.0/loadBalancer/healthMonitors", "39.0"},
	{"/cloudapi/1.0.0/edgeGateways/loadBalancer/healthMonitorSummaries", "39.0"},
	{"/cloudapi/1.0.0/loadBalancer/virtualServices/httpPolicy", "38.0"},
}

// Served returns an error if the operation does not exist in the API version of the request.
func (r *Request) Served() error {
	_, path, _ := strings.Cut(r.Operation, " ")
	for _, y := range introduced {
		if strings.HasPrefix(path, y.under) && r.Version < y.since {
			return store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s in API version %s.",
				r.URL.Path, r.Version)
		}
	}
	return nil
}

// Newer removes fields from a response if the client uses a version older than the given one, which introduced them.
func (r *Request) Newer(version string, out map[string]any, fields ...string) {
	if r.Version >= version {
		return
	}
	for _, f := range fields {
		delete(out, f)
	}
}
