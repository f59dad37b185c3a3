// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Ref returns a reference of cloudapi.
func Ref(kind, id, name string) map[string]any {
	return map[string]any{"name": name, "id": store.URN(kind, id)}
}

// AdminOrgType is the media type of the administrator view of an organization.
const AdminOrgType = "application/vnd.vmware.admin.organization+xml"

// AdminUserType is the media type of the administrator view of a user.
const AdminUserType = "application/vnd.vmware.admin.user+xml"

// AdminRef returns a reference to an object in /api/admin.
func AdminRef(site wire.Site, element, kind, id, name string) *xmltree.Node {
	return xmltree.New(element, xmltree.A("href", site.Base()+"/api/admin/"+kind+"/"+id), xmltree.A("id", store.URN(kind, id)),
		xmltree.A("name", name),
		xmltree.A("type", "application/vnd.vmware.admin."+kind+"+xml"))
}

// VisibleOrgs returns the organizations that the caller may see.
func VisibleOrgs(session *store.Session, st *store.Store) []*store.Org {
	var out []*store.Org
	for i := range st.Model.Orgs {
		if o := &st.Model.Orgs[i]; session.Sees(o.ID) {
			out = append(out, o)
		}
	}
	return out
}

// maxName is the maximum length of the name of a vApp or VM.
const maxName = 128

// CheckName returns an error if a name is empty or too long.
func CheckName(kind, name string) error {
	if name == "" || len(name) > maxName {
		return store.BadRequest("The %s name %q is invalid: it must have 1 to %d characters.", kind, name, maxName)
	}
	return nil
}

// OrElse returns value, or other if value is empty.
func OrElse(value, other string) string {
	if value == "" {
		return other
	}
	return value
}
