// SPDX-License-Identifier: Apache-2.0

package query

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func mediaRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	for _, sh := range visibleCatalogs(r) {
		for i := range sh.Catalog.Media {
			m := &sh.Catalog.Media[i]
			v := sh.VDCOf(&store.Template{VDC: m.VDC})
			out = append(out, &record{
				metadata: r.Cloud.Store.Metadata[m.ID],
				links:    recordLinks(r.Site, "media", m.ID),
				attrs: []xmltree.Attr{
					A("ownerName", "system"),
					A("catalogName", sh.Catalog.Name),
					A("catalog", r.Site.Href("catalog", sh.Catalog.ID)),
					A("catalogItem", r.Site.Href("catalogitem", m.ItemID)),
					A("isPublished", sh.Catalog.Published),
					A("name", m.Name),
					A("vdc", r.Site.Href("vdc", v.ID)),
					A("vdcName", v.Name),
					A("org", r.Site.Href("org", sh.Org.ID)),
					A("creationDate", m.CreatedAt()),
					A("isBusy", r.Cloud.Tasks.Busy(m.ID)),
					A("storageB", m.Size),
					A("status", store.MediaStatus(m)),
					A("storageProfileName", r.Cloud.Store.ProfileName(v.DefaultProfile())),
					A("isInCatalog", true),
					A("isIso", api.OrElse(m.ImageType, "iso") == "iso"),
					A("isVdcEnabled", true),
					A("href", r.Site.Href("media", m.ID)),
					A("type", wire.Mime("media")),
				},
			})
		}
	}
	return out
}

// dropEmpty removes the zero attributes. It reuses the slice.
func dropEmpty(attrs []xmltree.Attr) []xmltree.Attr {
	out := attrs[:0]
	for _, a := range attrs {
		if a.Name != "" {
			out = append(out, a)
		}
	}
	return out
}

func recordLinks(site wire.Site, kind, id string) []*xmltree.Node {
	return []*xmltree.Node{xmltree.New("Link", xmltree.A("rel", "self"), xmltree.A("href", site.Href(kind, id)),
		xmltree.A("type", wire.Mime(kind)))}
}

// visibleCatalogs returns the catalogs that the caller can see.
func visibleCatalogs(r *api.Request) []store.OrgCatalog {
	var out []store.OrgCatalog
	for _, sh := range r.Cloud.Store.Catalogs() {
		if access.Reads(r, sh) {
			out = append(out, sh)
		}
	}
	return out
}
