// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// HighestVersion is the highest API version of the cell that answers.
func HighestVersion(r *Request) string {
	served := r.Cell.Served()
	return served[len(served)-1]
}

// GetVersions answers with the API versions that the cell serves.
func GetVersions(r *Request) (*Response, error) {
	n := xmltree.New("SupportedVersions", xmltree.A("xmlns", "http://www.vmware.com/vcloud/versions"))
	for _, v := range r.Cell.Served() {
		n.Add(xmltree.New("VersionInfo", xmltree.A("deprecated", v < "37.0"),
			xmltree.T("Version", v),
			xmltree.T("LoginUrl", r.Site.Base()+"/cloudapi/1.0.0/sessions"),
			xmltree.T("ProviderLoginUrl", r.Site.Base()+"/cloudapi/1.0.0/sessions/provider")))
	}
	return &Response{Status: http.StatusOK, XML: n, ContentType: "text/xml"}, nil
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

// Served refuses what the API version of the request does not have yet.
func (r *Request) Served() error {
	_, path, _ := strings.Cut(r.Operation, " ")
	for _, y := range younger {
		if strings.HasPrefix(path, y.under) && r.Version < y.since {
			return store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s in API version %s.",
				r.URL.Path, r.Version)
		}
	}
	return nil
}

// Newer takes fields out of an answer to a client that speaks a version before they were added.
func (r *Request) Newer(version string, out map[string]any, fields ...string) {
	if r.Version >= version {
		return
	}
	for _, f := range fields {
		delete(out, f)
	}
}
