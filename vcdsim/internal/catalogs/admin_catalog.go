// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const adminCatalogType = "application/vnd.vmware.admin.catalog+xml"

// OwnCatalog returns the catalog in the path. Only a GET request can access a catalog of another organization.
func OwnCatalog(r *api.Request) (store.OrgCatalog, error) {
	sh, ok := r.Cloud.Store.Catalog(store.Bare(r.Vars["id"]))
	if !ok || !access.Reads(r, sh) || r.Method != http.MethodGet && !r.Session.Sees(sh.Org.ID) {
		return store.OrgCatalog{}, store.Forbidden("CATALOG_VIEW", r.Vars["id"])
	}
	return sh, nil
}

// GetAdminCatalog returns the administrator's view of a catalog.
func GetAdminCatalog(r *api.Request, sh store.OrgCatalog) (*api.Response, error) {
	return api.XML(adminCatalogNode(r.Site, r.Cloud.Store, sh)), nil
}

func adminCatalogNode(site wire.Site, st *store.Store, sh store.OrgCatalog) *xmltree.Node {
	c := sh.Catalog
	path := "/api/admin/catalog/" + c.ID
	n := xmltree.New("AdminCatalog", wire.Namespaces(), xmltree.A("name", c.Name), xmltree.A("id", store.URN("catalog", c.ID)),
		xmltree.A("href", site.Base()+path), xmltree.A("type", adminCatalogType))
	n.Add([]*xmltree.Node{
		site.Link("up", "/api/admin/org/"+sh.Org.ID, "application/vnd.vmware.admin.organization+xml"),
		site.Link("alternate", "/api/catalog/"+c.ID, wire.Mime("catalog")),
		site.Link("edit", path, adminCatalogType),
		site.Link("remove", path, ""),
		site.Link("down", path+"/metadata", wire.Mime("metadata")),
		site.Link("publish", path+"/action/publish", "application/vnd.vmware.admin.publishCatalogParams+xml"),
	})
	addCatalogContent(site, n, sh)
	n.Add(catalogProfiles(site, st, sh))
	return n
}

// catalogProfiles returns the storage profiles that store the items of a catalog. An empty list means that the catalog
// can use any profile.
func catalogProfiles(site wire.Site, st *store.Store, sh store.OrgCatalog) *xmltree.Node {
	n := xmltree.New("CatalogStorageProfiles")
	for _, id := range sh.Catalog.StorageProfiles {
		n.Add(site.Ref("VdcStorageProfile", store.Entity{Kind: "vdcstorageProfile", ID: id, Name: st.ProfileName(id)}))
	}
	return n
}

// CreateCatalog creates a catalog at once: VCD responds with a task that has already finished.
func CreateCatalog(r *api.Request) (*api.Response, error) {
	org := r.Cloud.Store.Org(store.Bare(r.Vars["id"]))
	if org == nil || !r.Session.Sees(org.ID) {
		return nil, store.Forbidden("CATALOG_CREATE", r.Vars["id"])
	}
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	c := store.Catalog{
		ID:          r.Cloud.IDs.Next("catalog"),
		Name:        tree.Attr("name"),
		Description: tree.Str("Description"),
		Created:     r.Cloud.Clock.Now(),
	}
	if err := cmp.Or(checkCatalogName(org, c.Name), checkNotSubscribed(tree)); err != nil {
		return nil, err
	}
	if c.StorageProfiles, err = readCatalogProfiles(r.Cloud.Store, org, tree); err != nil {
		return nil, err
	}
	org.Catalogs = append(org.Catalogs, c)
	sh, _ := r.Cloud.Store.Catalog(c.ID)
	return api.XML(adminCatalogNode(r.Site, r.Cloud.Store, sh)).CreatedAt(r.Site.Base() + "/api/admin/catalog/" + c.ID), nil
}

func readCatalogProfiles(st *store.Store, org *store.Org, tree *xmltree.Node) ([]string, error) {
	var out []string
	for _, p := range tree.At("CatalogStorageProfiles").All("VdcStorageProfile") {
		id := store.Bare(p.Attr("href"))
		owner, _, profile := st.Profile(id)
		if profile == nil || owner.ID != org.ID {
			return nil, store.Forbidden("VDC_STORAGE_PROFILE_VIEW", id)
		}
		out = append(out, id)
	}
	return out, nil
}

// checkNotSubscribed refuses a catalog that subscribes to another site, which vcdsim does not simulate.
func checkNotSubscribed(tree *xmltree.Node) error {
	if tree.At("ExternalCatalogSubscriptionParams") != nil {
		return store.BadRequest("Catalogs cannot subscribe to external feeds.")
	}
	return nil
}

func checkCatalogName(org *store.Org, name string) error {
	if err := api.CheckName("catalog", name); err != nil {
		return err
	}
	if slices.ContainsFunc(org.Catalogs, func(c store.Catalog) bool { return c.Name == name }) {
		return store.DuplicateName(name)
	}
	return nil
}

// PutCatalog changes a catalog. A refused request changes nothing.
func PutCatalog(r *api.Request, sh store.OrgCatalog, tree *xmltree.Node) (*api.Response, error) {
	if err := checkNotSubscribed(tree); err != nil {
		return nil, err
	}
	name := tree.Attr("name")
	profiles := sh.Catalog.StorageProfiles
	if name != sh.Catalog.Name {
		if err := checkCatalogName(sh.Org, name); err != nil {
			return nil, err
		}
	}
	if tree.At("CatalogStorageProfiles") != nil {
		var err error
		if profiles, err = readCatalogProfiles(r.Cloud.Store, sh.Org, tree); err != nil {
			return nil, err
		}
	}
	sh.Catalog.Name = name
	sh.Catalog.Description = tree.Str("Description")
	sh.Catalog.StorageProfiles = profiles
	return api.XML(adminCatalogNode(r.Site, r.Cloud.Store, sh)), nil
}

// publishCatalog makes a catalog visible in all organizations, or ends that.
func publishCatalog(_ *api.Request, sh store.OrgCatalog, tree *xmltree.Node) (*api.Response, error) {
	if tree.At("IsPublished") == nil {
		return nil, store.BadRequest("Bad request - IsPublished is missing.")
	}
	sh.Catalog.Published = tree.Bool("IsPublished")
	return api.NoContent(), nil
}

// DeleteCatalog removes a catalog. Removing a catalog that has items requires the recursive parameter.
func DeleteCatalog(r *api.Request, sh store.OrgCatalog) (*api.Response, error) {
	if len(sh.Catalog.Templates)+len(sh.Catalog.Media) > 0 && r.Query.Get("recursive") != "true" {
		return nil, store.BadRequest("The catalog %q is not empty. You must remove its items first.", sh.Catalog.Name)
	}
	id := sh.Catalog.ID
	name := sh.Catalog.Name
	for _, t := range sh.Catalog.Templates {
		removeTemplate(r.Cloud, t.ID)
	}
	for _, m := range sh.Catalog.Media {
		removeMedia(r.Cloud, m.ID)
	}
	r.Cloud.Store.Forget(id)
	sh.Org.Catalogs = slices.DeleteFunc(slices.Clone(sh.Org.Catalogs), func(c store.Catalog) bool { return c.ID == id })
	return r.Done(store.Entity{Kind: "catalog", ID: id, Name: name}), nil
}
