// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// OwnerNode returns the Owner element of an entity.
func OwnerNode(site wire.Site, id, name string) *xmltree.Node {
	return xmltree.New("Owner", xmltree.A("type", wire.Mime("owner")),
		xmltree.New("User", xmltree.A("href", site.Base()+"/api/admin/user/"+id),
			xmltree.A("name", name), xmltree.A("type", "application/vnd.vmware.admin.user+xml")))
}

// Section returns the attributes of an OVF section.
func Section(href, kind string) []xmltree.Attr {
	return []xmltree.Attr{xmltree.A("href", href), xmltree.A("type", wire.Mime(kind)), xmltree.A("ovf:required", false)}
}
