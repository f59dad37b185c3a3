// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Ref is a reference of cloudapi.
func Ref(kind, id, name string) map[string]any {
	return map[string]any{"name": name, "id": store.URN(kind, id)}
}

// AdminOrgType is the media type of an organization as administrators see it.
const AdminOrgType = "application/vnd.vmware.admin.organization+xml"

// AdminUserType is the media type of a user as administrators see it.
const AdminUserType = "application/vnd.vmware.admin.user+xml"

// AdminRef is a reference below /api/admin.
func AdminRef(site wire.Site, element, kind, id, name string) *xmltree.Node {
	return xmltree.New(element, xmltree.A("href", site.Base()+"/api/admin/"+kind+"/"+id), xmltree.A("id", store.URN(kind, id)),
		xmltree.A("name", name),
		xmltree.A("type", "application/vnd.vmware.admin."+kind+"+xml"))
}

// VisibleOrgs are the organizations the caller may see.
func VisibleOrgs(session *store.Session, st *store.Store) []*store.Org {
	var out []*store.Org
	for i := range st.Model.Orgs {
		if o := &st.Model.Orgs[i]; session.Sees(o.ID) {
			out = append(out, o)
		}
	}
	return out
}

// maxName is the longest name of a vApp or VM.
const maxName = 128

// CheckName refuses a name that is empty or too long.
func CheckName(kind, name string) error {
	if name == "" || len(name) > maxName {
		return store.BadRequest("The %s name %q is invalid: it must have 1 to %d characters.", kind, name, maxName)
	}
	return nil
}

// OrElse returns the value, or the other if it is empty.
func OrElse(value, other string) string {
	if value == "" {
		return other
	}
	return value
}
