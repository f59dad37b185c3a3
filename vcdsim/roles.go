// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const (
	rolesPath   = "1.0.0/roles"
	globalsPath = "1.0.0/globalRoles"
	bundlesPath = "1.0.0/rightsBundles"
)

// undefinedBundle is what VCD writes without a translation key.
const undefinedBundle = "com.vmware.vcloud.undefined.key"

func roleCollections() []*collection {
	defaults := map[string]any{"bundleKey": undefinedBundle, "readOnly": false}
	name := []string{"name"}
	return []*collection{
		{path: rolesPath, kind: "role", right: "ROLE", unique: name, required: name, defaults: defaults},
		{
			path:     globalsPath,
			kind:     "globalRole",
			right:    "GLOBAL_ROLE",
			unique:   name,
			required: name,
			provider: true,
			defaults: defaults,
		},
		{
			path:     bundlesPath,
			kind:     "rightsBundle",
			right:    "RIGHTS_BUNDLE",
			unique:   name,
			required: name,
			provider: true,
			defaults: defaults,
		},
	}
}

// A right is one of VCD's rights.
type right struct {
	name, category, kind string
	implied              []string
}

// rights are those of described, and all others that VCD's own roles and its default bundle have.
var rights = sync.OnceValue(func() []right {
	out := slices.Clone(described)
	known := map[string]bool{}
	for _, x := range described {
		known[x.name] = true
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
		out = append(out, right{name: name, category: category, kind: kind})
	}
	return out
})

// described are rights whose category and implications are known.
var described = []right{
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
	{"Catalog: View Published Catalogs", "Catalog", "VIEW", nil},
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
	{rightExtraConfig, "vApp", "MODIFY", nil},
	{rightConsolidate, "vApp", "MODIFY", nil},
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

func rightURN(source *ids.Source, name string) string {
	return store.URN("right", source.Named("right", name))
}

func categoryURN(source *ids.Source, name string) string {
	return store.URN("rightsCategory", source.Named("rightsCategory", name))
}

func rightJSON(source *ids.Source, x right) map[string]any {
	implied := []any{}
	for _, name := range x.implied {
		implied = append(implied, map[string]any{"name": name, "id": rightURN(source, name)})
	}
	return map[string]any{
		"id":               rightURN(source, x.name),
		"name":             x.name,
		"description":      x.name,
		"bundleKey":        undefinedBundle,
		"category":         categoryURN(source, x.category),
		"serviceNamespace": nil,
		"rightType":        x.kind,
		"impliedRights":    implied,
	}
}

// visibleRights are the built-in rights and those that entity types brought.
func visibleRights(r *request) []any {
	var out []any
	for _, x := range rights() {
		out = append(out, rightJSON(r.cloud.ids, x))
	}
	known := map[string]bool{}
	for _, d := range r.cloud.store.Documents[typesPath] {
		for _, x := range typeRights(d.Body) {
			if !known[x.name] { // versions of a type share their rights
				out = append(out, rightJSON(r.cloud.ids, x))
			}
			known[x.name] = true
		}
	}
	return out
}

func rightCategories(r *request) []any {
	var out []any
	seen := map[string]bool{}
	for _, x := range rights() {
		if !seen[x.category] {
			seen[x.category] = true
			out = append(out, map[string]any{
				"id":            categoryURN(r.cloud.ids, x.category),
				"name":          x.category,
				"bundleKey":     undefinedBundle,
				"parent":        "",
				"rightsCount":   map[string]any{"view": 1, "modify": 1},
				"subCategories": []string{},
			})
		}
	}
	return out
}

func roleRoutes(add addRoute) {
	for path, all := range map[string]func(*request) []any{
		"rights":           visibleRights,
		"rightsCategories": rightCategories,
	} {
		add("GET", "/cloudapi/1.0.0/"+path, func(r *request) (*response, error) { return r.page(all(r)) },
			latencyCloudAPI)
		add("GET", "/cloudapi/1.0.0/"+path+"/{id}",
			func(r *request) (*response, error) { return oneOf(r, all(r), "id") }, latencyCloudAPI)
	}
	for _, c := range roleCollections() {
		base := "/cloudapi/" + c.path + "/{id}"
		rights := refList{c, "rights", visibleRights}
		rights.routes(add, base+"/rights")
		if c.provider {
			tenants := refList{c, "tenants", tenantRefs}
			tenants.routes(add, base+"/tenants")
			add("POST", base+"/tenants/publish", tenants.add, latencyWrite)
			add("POST", base+"/tenants/unpublish", tenants.remove, latencyWrite)
			add("POST", base+"/tenants/publishAll", tenants.addAll, latencyWrite)
			add("POST", base+"/tenants/unpublishAll", tenants.removeAll, latencyWrite)
		}
	}
}

// oneOf answers with the item whose id is in the path.
func oneOf(r *request, items []any, key string) (*response, error) {
	for _, item := range items {
		if id, _ := at(item, []string{key}); id == r.vars["id"] {
			return jsonOK(item), nil
		}
	}
	return nil, store.Forbidden("VIEW", r.vars["id"])
}

func tenantRefs(r *request) []any {
	var out []any
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		out = append(out, jsonRef("org", o.ID, o.Name))
	}
	return out
}

// A refList is a list of references below the documents of a collection.
type refList struct {
	of     *collection
	name   string
	target func(*request) []any // what there is to refer to
}

func (l refList) routes(add addRoute, path string) {
	add("GET", path, l.list, latencyCloudAPI)
	add("POST", path, l.add, latencyWrite)
	add("PUT", path, l.replace, latencyWrite)
}

func (l refList) page(r *request, d *store.Object) (*response, error) {
	out := []any{}
	for _, item := range l.target(r) {
		if id, _ := at(item, []string{"id"}); slices.Contains(d.Refs[l.name], id) {
			name, _ := at(item, []string{"name"})
			out = append(out, map[string]any{"name": name, "id": id})
		}
	}
	return r.page(out)
}

func (l refList) list(r *request) (*response, error) {
	d, err := l.of.find(r, r.vars["id"])
	if err != nil {
		return nil, err
	}
	return l.page(r, d)
}

// change reads the references of the body and lets f make the new list.
func (l refList) change(r *request, f func(have, given []string) []string) (*response, error) {
	if err := l.of.writable(r); err != nil {
		return nil, err
	}
	d, err := l.of.find(r, r.vars["id"])
	if err != nil {
		return nil, err
	}
	var body struct {
		Values []struct {
			ID string `json:"id"`
		} `json:"values"`
	}
	if len(r.body) > 0 {
		if err := r.document(&body); err != nil {
			return nil, err
		}
	}
	var given []string
	for _, v := range body.Values {
		given = append(given, v.ID)
	}
	d.Refs[l.name] = f(d.Refs[l.name], given)
	d.Version++
	res, err := l.page(r, d)
	if res != nil {
		res.status = http.StatusOK
	}
	return res, err
}

func (l refList) add(r *request) (*response, error) {
	return l.change(r, func(have, given []string) []string { return append(slices.Clone(have), given...) })
}

func (l refList) replace(r *request) (*response, error) {
	return l.change(r, func(_, given []string) []string { return given })
}

func (l refList) remove(r *request) (*response, error) {
	return l.change(r, func(have, given []string) []string {
		return slices.DeleteFunc(slices.Clone(have), func(id string) bool { return slices.Contains(given, id) })
	})
}

func (l refList) addAll(r *request) (*response, error) {
	return l.change(r, func(_, _ []string) []string {
		var out []string
		for _, item := range l.target(r) {
			id, _ := at(item, []string{"id"})
			out = append(out, id)
		}
		return out
	})
}

func (l refList) removeAll(r *request) (*response, error) {
	return l.change(r, func(_, _ []string) []string { return nil })
}

// seedRoles gives an organization its roles, and the provider the global ones.
func seedRoles(s *cloud, org *store.Org) {
	names := roleNames
	if org.Name == store.SystemOrg {
		names = append([]string{"System Administrator"}, roleNames...)
		for _, name := range roleNames {
			s.store.Documents.Add(globalsPath, org.ID, roleBody(s, "globalRole", name))
		}
		d := s.store.Documents.Add(bundlesPath, org.ID, roleBody(s, "rightsBundle", defaultBundleName))
		d.Refs["rights"] = s.rightURNs(defaultBundle())
	}
	for _, name := range names {
		d := s.store.Documents.Add(rolesPath, org.ID, roleBody(s, "role", name))
		rights, _ := builtInRole(name)
		for _, right := range rights {
			d.Refs["rights"] = append(d.Refs["rights"], store.URN("right", s.ids.Named("right", right)))
		}
	}
	for _, role := range org.Roles {
		body := roleBody(s, "role", role.Name)
		body["description"] = role.Description
		body["readOnly"] = false
		d := s.store.Documents.Add(rolesPath, org.ID, body)
		d.Refs["rights"] = s.rightURNs(role.Rights)
	}
	for _, bundle := range org.Bundles {
		body := roleBody(s, "rightsBundle", bundle.Name)
		body["description"] = bundle.Description
		body["readOnly"] = false
		d := s.store.Documents.Add(bundlesPath, s.store.OrgByName(store.SystemOrg).ID, body)
		d.Refs["rights"] = s.rightURNs(bundle.Rights)
		d.Refs["tenants"] = []string{store.URN("org", org.ID)}
	}
}

func (s *cloud) rightURNs(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, store.URN("right", s.ids.Named("right", name)))
	}
	return out
}

func roleBody(s *cloud, kind, name string) map[string]any {
	return map[string]any{
		"id":          store.URN(kind, s.ids.Named(kind, name)),
		"name":        name,
		"description": "Built-in rights of " + name,
		"bundleKey":   undefinedBundle,
		"readOnly":    true,
	}
}
