// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/compute"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// sectionRoutes serves each section of a document at the address in that document.
func sectionRoutes(add api.AddRoute) {
	for _, s := range []struct {
		path     string
		document api.Handler
		names    []string
	}{
		{"/api/vApp/vapp-{vapp}", api.With(compute.OwnVApp, compute.GetVApp), []string{"networkSection", "startupSection"}},
		{"/api/vApp/vm-{vm}", api.With(compute.OwnVM, compute.GetVM), []string{"operatingSystemSection", "runtimeInfoSection"}},
		{
			"/api/vAppTemplate/vappTemplate-{id}",
			api.With2(ownTemplate, getTemplate),
			[]string{"customizationSection", "leaseSettingsSection"},
		},
		{"/api/vAppTemplate/vm-{id}", getTemplateVM, []string{"guestCustomizationSection", "networkConnectionSection"}},
	} {
		for _, name := range s.names {
			add("GET", s.path+"/"+name, sectionOf(s.document), cloud.LatencyLegacy)
		}
	}
}

// sectionOf returns a handler for the section of a document whose address is the URL of the request.
func sectionOf(document api.Handler) api.Handler {
	return func(r *api.Request) (*api.Response, error) {
		whole, err := document(r)
		if err != nil {
			return nil, err
		}
		wanted := strings.TrimSuffix(r.Site.Base()+r.URL.Path, "/")
		for _, part := range whole.XML.Children {
			href := cmp.Or(part.Attr("href"), part.Attr(ovf.VcloudPrefix+"href"))
			if strings.TrimSuffix(href, "/") != wanted {
				continue
			}
			root := xmltree.New(part.Name, wire.Namespaces(), part.Attrs)
			root.Children = part.Children
			return api.XML(root), nil
		}
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s.", r.URL.Path)
	}
}
