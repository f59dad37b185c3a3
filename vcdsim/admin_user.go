// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const adminUserType = "application/vnd.vmware.admin.user+xml"

// userByID finds a user the caller may see.
func userByID(session *store.Session, st *store.Store, id string) (*store.Org, *store.User, error) {
	for _, o := range visibleOrgs(session, st) {
		for i := range o.Users {
			if o.Users[i].ID == id {
				return o, &o.Users[i], nil
			}
		}
	}
	return nil, nil, store.Forbidden("USER_VIEW", id)
}

// getUser shows a user of an organization.
func getUser(r *request) (*response, error) {
	org, u, err := userByID(r.session, r.cloud.store, store.Bare(r.vars["id"]))
	if err != nil {
		return nil, err
	}
	return xmlOK(userNode(r.site, r.cloud.ids, org, u)), nil
}

func userNode(site wire.Site, source *ids.Source, o *store.Org, u *store.User) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	path := "/api/admin/user/" + u.ID
	provider := u.Details.Provider
	if provider == "" {
		provider = "INTEGRATED"
	}
	n := xmltree.New("User", wire.Namespaces(), A("name", u.Name), A("id", store.URN("user", u.ID)), A("href", site.Base()+path),
		A("type", adminUserType))
	n.Add([]*xmltree.Node{
		site.Link("up", "/api/admin/org/"+o.ID, adminOrgType),
		site.Link("edit", path, adminUserType),
		site.Link("remove", path, ""),
		T("Description", u.Details.Description),
		T("FullName", u.FullName),
		T("EmailAddress", u.Details.Email),
		T("Telephone", u.Details.Telephone),
		T("IsEnabled", !u.Disabled),
		T("IsLocked", false),
		T("IM", u.Details.IM),
		T("NameInSource", u.Name),
		T("IsExternal", u.Details.External),
		T("ProviderType", provider),
		T("IsGroupRole", false),
		T("StoredVmQuota", u.Details.StoredVMQuota),
		T("DeployedVmQuota", u.Details.DeployedVMQuota),
		adminRef(site, "Role", "role", source.Named("role", u.Role), u.Role),
		xmltree.New("GroupReferences"),
	})
	return n
}

// readUser applies a User element. A password is stored and never shown.
func readUser(st *store.Store, org *store.Org, u *store.User, tree *xmltree.Node) error {
	name := tree.Attr("name")
	if err := checkName("user", name); err != nil {
		return err
	}
	if slices.ContainsFunc(org.Users, func(x store.User) bool { return x.Name == name && x.ID != u.ID }) {
		return store.DuplicateName(name)
	}
	if ref := tree.At("Role"); ref != nil {
		role, err := roleName(st, org, store.Bare(ref.Attr("href")))
		if err != nil {
			return err
		}
		u.Role = role
	}
	u.Name = name
	u.FullName = tree.Str("FullName")
	u.Disabled = !tree.Bool("IsEnabled")
	if password := tree.Str("Password"); password != "" {
		u.Password = password
	}
	d := &u.Details
	d.Description = tree.Str("Description")
	d.Email = tree.Str("EmailAddress")
	d.Telephone = tree.Str("Telephone")
	d.IM = tree.Str("IM")
	d.External = tree.Bool("IsExternal")
	d.Provider = tree.Str("ProviderType")
	d.StoredVMQuota, _ = tree.Int("StoredVmQuota")
	d.DeployedVMQuota, _ = tree.Int("DeployedVmQuota")
	return nil
}

// roleName finds a role of an organization by its bare id.
func roleName(st *store.Store, org *store.Org, id string) (string, error) {
	for _, d := range st.Documents[rolesPath] {
		if d.OrgID == org.ID && store.Bare(d.ID()) == id {
			return store.Text(d.Body, "name"), nil
		}
	}
	return "", store.Forbidden("ROLE_VIEW", id)
}

// hasRole reports whether an organization has a role of that name.
func hasRole(s *cloud, org *store.Org, name string) bool {
	return slices.ContainsFunc(s.store.Documents[rolesPath],
		func(d *store.Object) bool { return d.OrgID == org.ID && store.Text(d.Body, "name") == name })
}

func createUser(r *request, org *store.Org, tree *xmltree.Node) (*response, error) {
	u := store.User{ID: r.cloud.ids.Next("user")}
	if err := readUser(r.cloud.store, org, &u, tree); err != nil {
		return nil, err
	}
	if u.Role == "" || u.Password == "" && !u.Details.External {
		return nil, store.BadRequest("A user needs a role and a password.")
	}
	org.Users = append(org.Users, u)
	return xmlOK(userNode(r.site, r.cloud.ids, org, &u)).createdAt(r.site.Base() + "/api/admin/user/" + u.ID), nil
}

func putUser(r *request) (*response, error) {
	org, u, err := userByID(r.session, r.cloud.store, store.Bare(r.vars["id"]))
	if err != nil {
		return nil, err
	}
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	if err := readUser(r.cloud.store, org, u, tree); err != nil {
		return nil, err
	}
	return xmlOK(userNode(r.site, r.cloud.ids, org, u)), nil
}

func deleteUser(r *request) (*response, error) {
	org, u, err := userByID(r.session, r.cloud.store, store.Bare(r.vars["id"]))
	if err != nil {
		return nil, err
	}
	id := u.ID
	org.Users = slices.DeleteFunc(slices.Clone(org.Users), func(x store.User) bool { return x.ID == id })
	return noContent(), nil
}

// takeOwnership makes what a user owns the caller's.
func takeOwnership(r *request) (*response, error) {
	_, u, err := userByID(r.session, r.cloud.store, store.Bare(r.vars["id"]))
	if err != nil {
		return nil, err
	}
	for _, v := range r.cloud.store.VApps {
		if v.OwnerID == u.ID {
			v.OwnerID = r.session.UserID
		}
	}
	for _, d := range r.cloud.store.Disks {
		if d.OwnerID == u.ID {
			d.OwnerID = r.session.UserID
		}
	}
	return noContent(), nil
}
