// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// getUser returns a user of an organization.
func getUser(r *api.Request) (*api.Response, error) {
	org, u, err := access.UserByID(r.Session, r.Cloud.Store, store.Bare(r.Vars["id"]))
	if err != nil {
		return nil, err
	}
	return api.XML(userNode(r.Site, r.Cloud, org, u)), nil
}

func userNode(site wire.Site, s *cloud.Cloud, o *store.Org, u *store.User) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	path := "/api/admin/user/" + u.ID
	provider := u.Details.Provider
	if provider == "" {
		provider = "INTEGRATED"
	}
	n := xmltree.New("User", wire.Namespaces(), A("name", u.Name), A("id", store.URN("user", u.ID)), A("href", site.Base()+path),
		A("type", api.AdminUserType))
	n.Add([]*xmltree.Node{
		site.Link("up", "/api/admin/org/"+o.ID, api.AdminOrgType),
		site.Link("edit", path, api.AdminUserType),
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
		api.AdminRef(site, "Role", "role", access.RoleID(s, o.ID, u.Role), u.Role),
		xmltree.New("GroupReferences"),
	})
	return n
}

// readUser applies a User element. The password is stored but never shown.
func readUser(st *store.Store, org *store.Org, u *store.User, tree *xmltree.Node) error {
	name := tree.Attr("name")
	if err := api.CheckName("user", name); err != nil {
		return err
	}
	if slices.ContainsFunc(org.Users, func(x store.User) bool { return x.Name == name && x.ID != u.ID }) {
		return store.DuplicateName(name)
	}
	if ref := tree.At("Role"); ref != nil {
		role, err := access.RoleName(st, org, store.Bare(ref.Attr("href")))
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

func createUser(r *api.Request, org *store.Org, tree *xmltree.Node) (*api.Response, error) {
	u := store.User{ID: r.Cloud.IDs.Next("user")}
	if err := readUser(r.Cloud.Store, org, &u, tree); err != nil {
		return nil, err
	}
	if u.Role == "" || u.Password == "" && !u.Details.External {
		return nil, store.BadRequest("A user needs a role and a password.")
	}
	org.Users = append(org.Users, u)
	return api.XML(userNode(r.Site, r.Cloud, org, &u)).CreatedAt(r.Site.Base() + "/api/admin/user/" + u.ID), nil
}

func putUser(r *api.Request) (*api.Response, error) {
	org, u, err := access.UserByID(r.Session, r.Cloud.Store, store.Bare(r.Vars["id"]))
	if err != nil {
		return nil, err
	}
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if err := readUser(r.Cloud.Store, org, u, tree); err != nil {
		return nil, err
	}
	return api.XML(userNode(r.Site, r.Cloud, org, u)), nil
}

func deleteUser(r *api.Request) (*api.Response, error) {
	org, u, err := access.UserByID(r.Session, r.Cloud.Store, store.Bare(r.Vars["id"]))
	if err != nil {
		return nil, err
	}
	id := u.ID
	org.Users = slices.DeleteFunc(slices.Clone(org.Users), func(x store.User) bool { return x.ID == id })
	return api.NoContent(), nil
}

// takeOwnership transfers the vApps and disks of a user to the caller.
func takeOwnership(r *api.Request) (*api.Response, error) {
	_, u, err := access.UserByID(r.Session, r.Cloud.Store, store.Bare(r.Vars["id"]))
	if err != nil {
		return nil, err
	}
	for _, v := range r.Cloud.Store.VApps {
		if v.OwnerID == u.ID {
			v.OwnerID = r.Session.UserID
		}
	}
	for _, d := range r.Cloud.Store.Disks {
		if d.OwnerID == u.ID {
			d.OwnerID = r.Session.UserID
		}
	}
	return api.NoContent(), nil
}
