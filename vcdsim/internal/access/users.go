// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// OwnOrg returns the organization in the path.
func OwnOrg(r *api.Request) (*store.Org, error) {
	o := r.Cloud.Store.Org(store.Bare(r.Vars["id"]))
	if o == nil || !r.Session.Sees(o.ID) {
		return nil, store.Forbidden("ORG_VIEW", r.Vars["id"])
	}
	return o, nil
}

// UserByID returns a user that the caller may see.
func UserByID(session *store.Session, st *store.Store, id string) (*store.Org, *store.User, error) {
	for _, o := range api.VisibleOrgs(session, st) {
		for i := range o.Users {
			if o.Users[i].ID == id {
				return o, &o.Users[i], nil
			}
		}
	}
	return nil, nil, store.Forbidden("USER_VIEW", id)
}

// RoleName returns the name of an organization's role by its bare ID.
func RoleName(st *store.Store, org *store.Org, id string) (string, error) {
	for _, d := range st.Documents[RolesPath] {
		if d.OrgID == org.ID && store.Bare(d.ID()) == id {
			return store.Text(d.Body, "name"), nil
		}
	}
	return "", store.Forbidden("ROLE_VIEW", id)
}

// RoleID returns the bare ID of an organization's role of this name. It returns an ID even if the role is not defined.
func RoleID(s *cloud.Cloud, orgID, name string) string {
	for _, d := range s.Store.Documents[RolesPath] {
		if d.OrgID == orgID && store.Text(d.Body, "name") == name {
			return store.Bare(d.ID())
		}
	}
	return s.IDs.Named("role", name)
}

// hasRole reports whether an organization has a role of that name.
func hasRole(s *cloud.Cloud, org *store.Org, name string) bool {
	return slices.ContainsFunc(s.Store.Documents[RolesPath],
		func(d *store.Object) bool { return d.OrgID == org.ID && store.Text(d.Body, "name") == name })
}
