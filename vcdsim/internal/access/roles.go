// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// roleNames are the roles that every organization has.
var roleNames = []string{
	"Organization Administrator", "Catalog Author", "vApp Author", "vApp User", "Console Access Only",
	"Defer to Identity Provider",
}

// Paths of roles, global roles and rights bundles.
const (
	RolesPath   = "1.0.0/roles"
	globalsPath = "1.0.0/globalRoles"
	BundlesPath = "1.0.0/rightsBundles"
)

// undefinedBundle is the value that VCD returns for documents without a translation key.
const undefinedBundle = "com.vmware.vcloud.undefined.key"

// RoleCollections returns the collections of rights bundles, global roles, roles and rights.
func RoleCollections() []*documents.Collection {
	defaults := map[string]any{"bundleKey": undefinedBundle, "readOnly": false}
	name := []string{"name"}
	return []*documents.Collection{
		{Path: RolesPath, Kind: "role", Right: "ROLE", Unique: name, Required: name, Defaults: defaults},
		{
			Path:     globalsPath,
			Kind:     "globalRole",
			Right:    "GLOBAL_ROLE",
			Unique:   name,
			Required: name,
			Provider: true,
			Defaults: defaults,
		},
		{
			Path:     BundlesPath,
			Kind:     "rightsBundle",
			Right:    "RIGHTS_BUNDLE",
			Unique:   name,
			Required: name,
			Provider: true,
			Defaults: defaults,
		},
	}
}

// A Right is one of VCD's rights.
type Right struct {
	Name, Category, kind string
	implied              []string
}

// Rights returns the rights in described and all other rights that VCD's built-in roles and its default bundle contain.
var Rights = sync.OnceValue(func() []Right {
	out := slices.Clone(described)
	known := map[string]bool{}
	for _, x := range described {
		known[x.Name] = true
	}
	for _, name := range slices.Concat(defaultBundle(), rightsOfVAppUser()) {
		if known[name] {
			continue
		}
		known[name] = true
		category, what, _ := strings.Cut(name, ": ")
		kind := "MODIFY"
		if strings.HasPrefix(strings.ToUpper(what), "VIEW") {
			kind = "VIEW"
		}
		out = append(out, Right{Name: name, Category: category, kind: kind})
	}
	return out
})

// described are the rights with a known category and known implications.
var described = []Right{
	{rightAdminView, "General", "VIEW", nil},
	{rightAdminControl, "General", "MODIFY", []string{rightAdminView}},
	{"Organization: View", "Organization", "VIEW", nil},
	{"Organization Network: View", "Organization Network", "VIEW", nil},
	{"Organization vDC: View", "Organization VDC", "VIEW", nil},
	{"Access All Organization VDCs", "Organization VDC", "VIEW", nil},
	{rightPolicyView, "Organization VDC", "VIEW", nil},
	{"Organization vDC Network: View Properties", "Organization Network", "VIEW", nil},
	{rightEdgeView, "Gateway", "VIEW", nil},
	{rightBalancerView, "Gateway", "VIEW", nil},
	{rightBalancerConfigure, "Gateway", "MODIFY", []string{rightBalancerView}},
	{rightNATView, "Gateway", "VIEW", nil},
	{rightNATConfigure, "Gateway", "MODIFY", []string{rightNATView}},
	{rightFirewallView, "Gateway", "VIEW", nil},
	{rightFirewallConfigure, "Gateway", "MODIFY", []string{rightFirewallView}},
	{rightDFWConfigure, "Distributed Firewall", "MODIFY", nil},
	{rightCertificateView, "Certificate Library", "VIEW", nil},
	{rightCertificateManage, "Certificate Library", "MODIFY", []string{rightCertificateView}},
	{rightSpaceAllocate, "IP Spaces", "MODIFY", nil},
	{rightSpaceView, "IP Spaces", "VIEW", nil},
	{rightSpaceManage, "IP Spaces", "MODIFY", []string{rightSpaceView}},
	{rightCatalogView, "Catalog", "VIEW", nil},
	{
		"Catalog: Add vApp from My Cloud",
		"Catalog",
		"MODIFY",
		[]string{
			rightCatalogView, rightMediaView,
			"vApp Template / Media: Edit",
		},
	},
	{rightPublishedView, "Catalog", "VIEW", nil},
	{"Catalog: Edit Properties", "Catalog", "MODIFY", []string{rightCatalogView}},
	{"Catalog: Create / Delete a Catalog", "Catalog", "MODIFY", []string{rightCatalogView}},
	{rightMediaView, "vApp Template", "VIEW", nil},
	{"vApp Template / Media: Edit", "vApp Template", "MODIFY", []string{rightMediaView}},
	{"vApp Template: Checkout", "vApp Template", "MODIFY", []string{rightMediaView}},
	{rightMediaUpload, "vApp Template", "MODIFY", []string{rightMediaView}},
	{"vApp: Create / Reconfigure", "vApp", "MODIFY", []string{"vApp: View VM metrics"}},
	{"vApp: View VM metrics", "vApp", "VIEW", nil},
	{"vApp: Delete", "vApp", "MODIFY", nil},
	{"vApp: Edit Properties", "vApp", "MODIFY", nil},
	{"vApp: Edit VM Properties", "vApp", "MODIFY", nil},
	{"vApp: Edit VM CPU", "vApp", "MODIFY", nil},
	{"vApp: Edit VM Memory", "vApp", "MODIFY", nil},
	{"vApp: Edit VM Network", "vApp", "MODIFY", nil},
	{"vApp: Edit VM Hard Disk", "vApp", "MODIFY", nil},
	{"vApp: Edit VM Compute Policy", "vApp", "MODIFY", nil},
	{rightSnapshot, "vApp", "MODIFY", nil},
	{rightAffinity, "Organization VDC", "MODIFY", nil},
	{"vApp: Power Operations", "vApp", "MODIFY", nil},
	{rightVAppShare, "vApp", "MODIFY", []string{rightVAppACL}},
	{rightVAppACL, "vApp", "VIEW", nil},
	{rightVAppOwner, "vApp", "MODIFY", nil},
	{"vApp: Preserve ExtraConfig Elements during OVF Import and Export", "vApp", "MODIFY", nil},
	{RightExtraConfig, "vApp", "MODIFY", nil},
	{RightConsolidate, "vApp", "MODIFY", nil},
	{rightDiskCreate, "Disk", "MODIFY", nil},
	{rightDiskDelete, "Disk", "MODIFY", nil},
	{rightDiskEdit, "Disk", "MODIFY", nil},
	{rightDiskView, "Disk", "VIEW", nil},
	{"Role: Create, Edit, Delete, or Copy", "Role", "MODIFY", nil},
	{"Task: Resume, Abort, or Fail", "Task", "MODIFY", nil},
	{"VCD Extension: Register, Unregister, Refresh, Associate or Disassociate", "Extension", "MODIFY", nil},
	{"UI Plugins: Define, Upload, Modify, Delete, Associate or Disassociate", "Extension", "MODIFY", nil},
	{rightOwnClients, "Access", "MODIFY", nil},
	{rightAllClients, "Access", "MODIFY", []string{rightOwnClients}},
	{rightAccountView, "Access", "VIEW", nil},
	{rightAccountManage, "Access", "MODIFY", []string{rightAccountView}},
	{"User: Manage user's own API token", "Access", "MODIFY", nil},
}

// RightURN returns the URN of a right.
func RightURN(source *ids.Source, name string) string {
	return store.URN("right", source.Named("right", name))
}

func categoryURN(source *ids.Source, name string) string {
	return store.URN("rightsCategory", source.Named("rightsCategory", name))
}

func rightJSON(source *ids.Source, x Right) map[string]any {
	implied := []any{}
	for _, name := range x.implied {
		implied = append(implied, map[string]any{"name": name, "id": RightURN(source, name)})
	}
	return map[string]any{
		"id":               RightURN(source, x.Name),
		"name":             x.Name,
		"description":      x.Name,
		"bundleKey":        undefinedBundle,
		"category":         categoryURN(source, x.Category),
		"serviceNamespace": nil,
		"rightType":        x.kind,
		"impliedRights":    implied,
	}
}

// visibleRights returns the built-in rights and the rights of entity types.
func visibleRights(r *api.Request) []any {
	var out []any
	for _, x := range Rights() {
		out = append(out, rightJSON(r.Cloud.IDs, x))
	}
	known := map[string]bool{}
	for _, d := range r.Cloud.Store.Documents[TypesPath] {
		for _, x := range TypeRights(d.Body) {
			if !known[x.Name] { // versions of a type have the same rights
				out = append(out, rightJSON(r.Cloud.IDs, x))
			}
			known[x.Name] = true
		}
	}
	return out
}

func rightCategories(r *api.Request) []any {
	var out []any
	seen := map[string]bool{}
	for _, x := range Rights() {
		if !seen[x.Category] {
			seen[x.Category] = true
			out = append(out, map[string]any{
				"id":            categoryURN(r.Cloud.IDs, x.Category),
				"name":          x.Category,
				"bundleKey":     undefinedBundle,
				"parent":        "",
				"rightsCount":   map[string]any{"view": 1, "modify": 1},
				"subCategories": []string{},
			})
		}
	}
	return out
}

func roleRoutes(add api.AddRoute) {
	for path, all := range map[string]func(*api.Request) []any{
		"rights":           visibleRights,
		"rightsCategories": rightCategories,
	} {
		add("GET", "/cloudapi/1.0.0/"+path, func(r *api.Request) (*api.Response, error) { return r.Page(all(r)) },
			cloud.LatencyCloudAPI)
		add("GET", "/cloudapi/1.0.0/"+path+"/{id}",
			func(r *api.Request) (*api.Response, error) { return OneOf(r, all(r), "id") }, cloud.LatencyCloudAPI)
	}
	for _, c := range RoleCollections() {
		base := "/cloudapi/" + c.Path + "/{id}"
		rights := refList{c, "rights", visibleRights}
		rights.routes(add, base+"/rights")
		if c.Provider {
			tenants := refList{c, "tenants", tenantRefs}
			tenants.routes(add, base+"/tenants")
			add("POST", base+"/tenants/publish", tenants.add, cloud.LatencyWrite)
			add("POST", base+"/tenants/unpublish", tenants.remove, cloud.LatencyWrite)
			add("POST", base+"/tenants/publishAll", tenants.addAll, cloud.LatencyWrite)
			add("POST", base+"/tenants/unpublishAll", tenants.removeAll, cloud.LatencyWrite)
		}
	}
}

// OneOf responds with the item whose ID is in the path.
func OneOf(r *api.Request, items []any, key string) (*api.Response, error) {
	for _, item := range items {
		if id, _ := api.At(item, []string{key}); id == r.Vars["id"] {
			return api.JSON(item), nil
		}
	}
	return nil, store.Forbidden("VIEW", r.Vars["id"])
}

func tenantRefs(r *api.Request) []any {
	var out []any
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		out = append(out, api.Ref("org", o.ID, o.Name))
	}
	return out
}

// A refList is a list of references of each document of a collection.
type refList struct {
	of     *documents.Collection
	name   string
	target func(*api.Request) []any // all possible targets of references
}

func (l refList) routes(add api.AddRoute, path string) {
	add("GET", path, l.list, cloud.LatencyCloudAPI)
	add("POST", path, l.add, cloud.LatencyWrite)
	add("PUT", path, l.replace, cloud.LatencyWrite)
}

func (l refList) page(r *api.Request, d *store.Object) (*api.Response, error) {
	out := []any{}
	for _, item := range l.target(r) {
		if id, _ := api.At(item, []string{"id"}); slices.Contains(d.Refs[l.name], id) {
			name, _ := api.At(item, []string{"name"})
			out = append(out, map[string]any{"name": name, "id": id})
		}
	}
	return r.Page(out)
}

func (l refList) list(r *api.Request) (*api.Response, error) {
	d, err := l.of.Find(r, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	return l.page(r, d)
}

// change parses the references in the body and replaces the list with the result of f.
func (l refList) change(r *api.Request, f func(current, refs []string) []string) (*api.Response, error) {
	if err := l.of.Writable(r); err != nil {
		return nil, err
	}
	d, err := l.of.Find(r, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	var body struct {
		Values []struct {
			ID string `json:"id"`
		} `json:"values"`
	}
	if len(r.Content) > 0 {
		if err := r.Document(&body); err != nil {
			return nil, err
		}
	}
	var refs []string
	for _, v := range body.Values {
		refs = append(refs, v.ID)
	}
	d.Refs[l.name] = f(d.Refs[l.name], refs)
	d.Version++
	res, err := l.page(r, d)
	if res != nil {
		res.Status = http.StatusOK
	}
	return res, err
}

func (l refList) add(r *api.Request) (*api.Response, error) {
	return l.change(r, func(current, refs []string) []string { return append(slices.Clone(current), refs...) })
}

func (l refList) replace(r *api.Request) (*api.Response, error) {
	return l.change(r, func(_, refs []string) []string { return refs })
}

func (l refList) remove(r *api.Request) (*api.Response, error) {
	return l.change(r, func(current, refs []string) []string {
		return slices.DeleteFunc(slices.Clone(current), func(id string) bool { return slices.Contains(refs, id) })
	})
}

func (l refList) addAll(r *api.Request) (*api.Response, error) {
	return l.change(r, func(_, _ []string) []string {
		var out []string
		for _, item := range l.target(r) {
			id, _ := api.At(item, []string{"id"})
			out = append(out, id)
		}
		return out
	})
}

func (l refList) removeAll(r *api.Request) (*api.Response, error) {
	return l.change(r, func(_, _ []string) []string { return nil })
}

// SeedRoles adds the built-in roles of an organization and, for the provider, the global roles.
func SeedRoles(s *cloud.Cloud, org *store.Org) {
	names := roleNames
	if org.Name == store.SystemOrg {
		names = append([]string{"System Administrator"}, roleNames...)
		for _, name := range roleNames {
			s.Store.Documents.Add(globalsPath, org.ID, RoleBody(s, "globalRole", name))
		}
		d := s.Store.Documents.Add(BundlesPath, org.ID, RoleBody(s, "rightsBundle", defaultBundleName))
		d.Refs["rights"] = rightURNs(s, defaultBundle())
	}
	for _, name := range names {
		d := s.Store.Documents.Add(RolesPath, org.ID, RoleBody(s, "role", name))
		rights, _ := builtInRole(name)
		for _, right := range rights {
			d.Refs["rights"] = append(d.Refs["rights"], store.URN("right", s.IDs.Named("right", right)))
		}
	}
	for _, role := range org.Roles {
		body := RoleBody(s, "role", role.Name)
		body["description"] = role.Description
		body["readOnly"] = false
		d := s.Store.Documents.Add(RolesPath, org.ID, body)
		d.Refs["rights"] = rightURNs(s, role.Rights)
	}
	for _, bundle := range org.Bundles {
		body := RoleBody(s, "rightsBundle", bundle.Name)
		body["description"] = bundle.Description
		body["readOnly"] = false
		d := s.Store.Documents.Add(BundlesPath, s.Store.OrgByName(store.SystemOrg).ID, body)
		d.Refs["rights"] = rightURNs(s, bundle.Rights)
		d.Refs["tenants"] = []string{store.URN("org", org.ID)}
	}
}

func rightURNs(s *cloud.Cloud, names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, store.URN("right", s.IDs.Named("right", name)))
	}
	return out
}

// RoleBody returns the document of a built-in role or rights bundle.
func RoleBody(s *cloud.Cloud, kind, name string) map[string]any {
	return map[string]any{
		"id":          store.URN(kind, s.IDs.Named(kind, name)),
		"name":        name,
		"description": "Built-in rights of " + name,
		"bundleKey":   undefinedBundle,
		"readOnly":    true,
	}
}
