package vcdsim

import (
	"net/http"
	"slices"
	"strings"
)

// Rights that are checked.
const (
	rightVAppCreate    = "vApp: Create / Reconfigure"
	rightVAppDelete    = "vApp: Delete"
	rightVAppEdit      = "vApp: Edit Properties"
	rightVAppPower     = "vApp: Power Operations"
	rightVMEdit        = "vApp: Edit VM Properties"
	rightDiskCreate    = "Disk: Create"
	rightDiskEdit      = "Disk: Edit Properties"
	rightDiskDelete    = "Disk: Delete"
	rightCatalogCreate = "Catalog: Create / Delete a Catalog"
	rightCatalogEdit   = "Catalog: Edit Properties"
	rightMediaUpload   = "vApp Template / Media: Create / Upload"
	rightMediaEdit     = "vApp Template / Media: Edit"
	rightCatalogAdd    = "Catalog: Add vApp from My Cloud"
	rightSnapshot      = "vApp: Snapshot Operations"
	rightAffinity      = "Organization vDC: VM-VM Affinity Edit"
	rightRoleWrite     = "Role: Create, Edit, Delete, or Copy"
)

// A need is a right that a write takes. It is coarse: one right for a whole request, whatever the body changes, and reading
// takes none but to be of the organisation.
type need struct {
	method    string // empty: any but GET
	under     string // what the operation, without ids, begins with
	end       string // and ends with
	right     string
	operation string // as the refusal names it
}

// needs, the first that fits decides.
var needs = []need{
	{"", "/api/vApp/", "/action/createSnapshot", rightSnapshot, "VAPP_CREATE_SNAPSHOT"},
	{"", "/api/vApp/", "/action/revertToCurrentSnapshot", rightSnapshot, "VAPP_REVERT_SNAPSHOT"},
	{"", "/api/vApp/", "/action/removeAllSnapshots", rightSnapshot, "VAPP_REMOVE_SNAPSHOT"},
	{"", "/api/vdc/vmAffinityRules", "", rightAffinity, "VAPP_VM_EDIT_AFFINITY_RULE"},
	{"", "/api/vmAffinityRule", "", rightAffinity, "VAPP_VM_EDIT_AFFINITY_RULE"},
	{"", "/api/vdc/action/", "", rightVAppCreate, "VDC_COMPOSE_VAPP"},
	{"", "/api/vApp/vapp/action/recomposeVApp", "", rightVAppCreate, "VDC_RECOMPOSE_VAPP"},
	{"", "/api/vApp/vapp/action/deploy", "", rightVAppPower, "VAPP_DEPLOY"},
	{"", "/api/vApp/vapp/action/undeploy", "", rightVAppPower, "VAPP_UNDEPLOY"},
	{"", "/api/vApp/vm/action/deploy", "", rightVAppPower, "VAPP_DEPLOY"},
	{"", "/api/vApp/vm/action/undeploy", "", rightVAppPower, "VAPP_UNDEPLOY"},
	{"", "/api/vApp/vapp/power/", "", rightVAppPower, "VAPP_POWER"},
	{"", "/api/vApp/vm/power/", "", rightVAppPower, "VAPP_POWER"},
	{http.MethodDelete, "/api/vApp/vapp", "/vapp", rightVAppDelete, "VDC_DELETE_VAPP"},
	{http.MethodDelete, "/api/vApp/vm", "/vm", rightVAppDelete, "VAPP_DELETE_VM"},
	{"", "/api/vApp/vm", "", rightVMEdit, "VAPP_UPDATE_VM"},
	{"", "/api/vApp/vapp", "", rightVAppEdit, "VDC_UPDATE_VAPP"},
	{http.MethodPost, "/api/vdc/disk", "", rightDiskCreate, "VDC_CREATE_DISK"},
	{http.MethodDelete, "/api/disk", "/disk", rightDiskDelete, "VDC_DELETE_DISK"},
	{"", "/api/disk", "", rightDiskEdit, "VDC_UPDATE_DISK"},
	{http.MethodPost, "/api/admin/org/catalogs", "", rightCatalogCreate, "CATALOG_CREATE"},
	{http.MethodDelete, "/api/admin/catalog", "/catalog", rightCatalogCreate, "CATALOG_DELETE"},
	{"", "/api/admin/catalog", "", rightCatalogEdit, "CATALOG_UPDATE"},
	{"", "/api/catalog/action/upload", "", rightMediaUpload, "CATALOG_UPLOAD_MEDIA"},
	{"", "/api/catalog/action/captureVApp", "", rightCatalogAdd, "VAPP_CAPTURE"},
	{"", "/api/vAppTemplate/vappTemplate", "", rightMediaEdit, "VAPP_TEMPLATE_EDIT"},
	{"", "/api/media", "", rightMediaEdit, "MEDIA_EDIT"},
	{"", "/api/catalogItem", "", rightCatalogEdit, "CATALOG_ITEM_EDIT"},
	{"", "/cloudapi/1.0.0/roles", "", rightRoleWrite, "ROLE_MANAGE"},
}

func (n *need) fits(method, path string) bool {
	return (n.method == "" || n.method == method) && strings.HasPrefix(path, n.under) && strings.HasSuffix(path, n.end)
}

// roleRights are the rights of the roles VCD comes with, of those that are checked. The administrators' roles have all.
var roleRights = map[string][]string{
	"Catalog Author": {
		rightVAppCreate, rightVAppDelete, rightVAppEdit, rightVAppPower, rightVMEdit, rightDiskCreate, rightDiskEdit, rightDiskDelete,
		rightSnapshot, rightCatalogCreate, rightCatalogEdit, rightCatalogAdd, rightMediaUpload, rightMediaEdit,
	},
	"vApp Author":                {rightVAppCreate, rightVAppDelete, rightVAppEdit, rightVAppPower, rightVMEdit, rightDiskCreate, rightDiskEdit, rightDiskDelete, rightSnapshot},
	"vApp User":                  {rightVAppDelete, rightVAppEdit, rightVAppPower, rightVMEdit, rightSnapshot},
	"Console Access Only":        {},
	"Defer to Identity Provider": {},
}

// permitted refuses a write that the caller's role has no right to, in the words VCD has for what does not exist.
func (r *request) permitted() error {
	if r.session == nil || r.Method == http.MethodGet || r.session.provider() {
		return nil
	}
	_, path, _ := strings.Cut(r.op, " ")
	for i := range needs {
		if n := &needs[i]; n.fits(r.Method, path) {
			if r.hasRight(n.right) {
				return nil
			}
			return refuse(http.StatusForbidden, codeForbidden,
				"Either you need some or all of the following rights [%s] to perform operations [%s] for %s or the target entity is invalid.",
				n.right, n.operation, r.URL.Path)
		}
	}
	return nil
}

// hasRight looks at the caller's role: one that somebody made has the rights it was given, one that nobody knows has all.
func (r *request) hasRight(name string) bool {
	if have, builtIn := roleRights[r.session.Role]; builtIn {
		return slices.Contains(have, name)
	}
	for _, d := range r.sim.store.documents[rolesPath] {
		if readOnly, _ := d.body["readOnly"].(bool); d.orgID == r.session.OrgID && text(d.body, "name") == r.session.Role && !readOnly {
			return slices.Contains(d.refs["rights"], r.rightURN(name))
		}
	}
	return true
}
