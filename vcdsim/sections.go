// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// sectionRoutes serve sections of a document at the addresses that the document gives them.
func sectionRoutes(add addRoute) {
	for _, s := range []struct {
		path     string
		document handler
		names    []string
	}{
		{"/api/vApp/vapp-{vapp}", with(ownVApp, getVApp), []string{"networkSection", "startupSection"}},
		{"/api/vApp/vm-{vm}", with(ownVM, getVM), []string{"operatingSystemSection", "runtimeInfoSection"}},
		{
			"/api/vAppTemplate/vappTemplate-{id}",
			with2(ownTemplate, getTemplate),
			[]string{"customizationSection", "leaseSettingsSection"},
		},
		{"/api/vAppTemplate/vm-{id}", getTemplateVM, []string{"guestCustomizationSection", "networkConnectionSection"}},
	} {
		for _, name := range s.names {
			add("GET", s.path+"/"+name, sectionOf(s.document), latencyLegacy)
		}
	}
}

// sectionOf answers with the part of a document that has the address of the request.
func sectionOf(document handler) handler {
	return func(r *request) (*response, error) {
		whole, err := document(r)
		if err != nil {
			return nil, err
		}
		wanted := strings.TrimSuffix(r.site.Base()+r.URL.Path, "/")
		for _, part := range whole.xml.Children {
			href := cmp.Or(part.Attr("href"), part.Attr(vcloudPrefix+"href"))
			if strings.TrimSuffix(href, "/") != wanted {
				continue
			}
			root := xmltree.New(part.Name, wire.Namespaces(), part.Attrs)
			root.Children = part.Children
			return xmlOK(root), nil
		}
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s.", r.URL.Path)
	}
}
