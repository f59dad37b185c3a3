// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Rights that the simulator checks.
const (
	rightVAppCreate    = "vApp: Create / Reconfigure"
	rightVAppDelete    = "vApp: Delete"
	rightVAppEdit      = "vApp: Edit Properties"
	rightVAppPower     = "vApp: Power Operations"
	rightVMEdit        = "vApp: Edit VM Properties"
	rightDiskCreate    = "Organization vDC Named Disk: Create"
	rightDiskEdit      = "Organization vDC Named Disk: Edit Properties"
	rightDiskDelete    = "Organization vDC Named Disk: Delete"
	rightDiskView      = "Organization vDC Named Disk: View Properties"
	rightCatalogView   = "Catalog: View Private and Shared Catalogs"
	rightMediaView     = "vApp Template / Media: View"
	rightPolicyView    = "Organization vDC Compute Policy: View"
	rightCatalogCreate = "Catalog: Create / Delete a Catalog"
	rightCatalogEdit   = "Catalog: Edit Properties"
	rightPublish       = "Catalog: Publish"
	rightPublishedView = "Catalog: View Published Catalogs"
	rightMediaUpload   = "vApp Template / Media: Create / Upload"
	rightMediaEdit     = "vApp Template / Media: Edit"
	rightCatalogAdd    = "Catalog: Add vApp from My Cloud"
	rightSnapshot      = "vApp: Snapshot Operations"
	rightAffinity      = "Organization vDC: VM-VM Affinity Edit"
	RightConsolidate   = "vApp: VM Migrate, Force Undeploy, Relocate, Consolidate"
	RightExtraConfig   = "vApp: Allow All Extra Config"
	rightVAppShare     = "vApp: Sharing"
	rightVAppACL       = "vApp: View ACL"
	rightVAppOwner     = "vApp: Change Owner"
	rightAdminView     = "General: Administrator View"
	rightAdminControl  = "General: Administrator Control"
	rightRoleWrite     = "Role: Create, Edit, Delete, or Copy"

	rightOwnClients = "API Tokens: Manage"
	rightAllClients = "API Tokens: Manage All"
	// VMware's documentation names these View and Manage Service Accounts. It also names Group / User: View
	// differently.
	rightAccountView   = "Service Accounts: View"
	rightAccountManage = "Service Accounts: Manage"
)

// A Need lists rights. A request requires one of them. The need applies to the whole request, independent of the body.
// Reading requires only membership of the organization, unless a need requires more.
type Need struct {
	Method    string // empty for all except GET
	Under     string // prefix of the operation without IDs
	End       string // suffix of the operation
	Rights    []string
	Operation string // for the error message
}

// Needs are the needs of requests. The first match decides.
var Needs = []Need{
	{http.MethodGet, "/api/vApp/vapp/", "/controlAccess", []string{rightVAppACL}, "VAPP_VIEW_ACL"},
	{"", "/api/vApp/vapp/", "/controlAccess", []string{rightVAppShare}, "VAPP_SHARE"},
	{"", "/api/vApp/vapp/", "/owner", []string{rightVAppOwner}, "VAPP_CHANGE_OWNER"},
	{"", "/api/vApp/", "/action/createSnapshot", []string{rightSnapshot}, "VAPP_CREATE_SNAPSHOT"},
	{"", "/api/vApp/", "/action/revertToCurrentSnapshot", []string{rightSnapshot}, "VAPP_REVERT_SNAPSHOT"},
	{"", "/api/vApp/", "/action/removeAllSnapshots", []string{rightSnapshot}, "VAPP_REMOVE_SNAPSHOT"},
	{"", "/api/vApp/", "/action/consolidate", []string{RightConsolidate}, "VAPP_VM_CONSOLIDATE"},
	{"", "/api/vdc/vmAffinityRules", "", []string{rightAffinity}, "VAPP_VM_EDIT_AFFINITY_RULE"},
	{"", "/api/vmAffinityRule", "", []string{rightAffinity}, "VAPP_VM_EDIT_AFFINITY_RULE"},
	{"", "/api/vdc/action/", "", []string{rightVAppCreate}, "VDC_COMPOSE_VAPP"},
	{"", "/api/vApp/vapp/action/recomposeVApp", "", []string{rightVAppCreate}, "VDC_RECOMPOSE_VAPP"},
	{"", "/api/vApp/vapp/action/deploy", "", []string{rightVAppPower}, "VAPP_DEPLOY"},
	{"", "/api/vApp/vapp/action/undeploy", "", []string{rightVAppPower}, "VAPP_UNDEPLOY"},
	{"", "/api/vApp/vm/action/deploy", "", []string{rightVAppPower}, "VAPP_DEPLOY"},
	{"", "/api/vApp/vm/action/undeploy", "", []string{rightVAppPower}, "VAPP_UNDEPLOY"},
	{"", "/api/vApp/vapp/power/", "", []string{rightVAppPower}, "VAPP_POWER"},
	{"", "/api/vApp/vm/power/", "", []string{rightVAppPower}, "VAPP_POWER"},
	{http.MethodDelete, "/api/vApp/vapp", "/vapp", []string{rightVAppDelete}, "VDC_DELETE_VAPP"},
	{http.MethodDelete, "/api/vApp/vm", "/vm", []string{rightVAppDelete}, "VAPP_DELETE_VM"},
	{"", "/api/vApp/vm", "", []string{rightVMEdit}, "VAPP_UPDATE_VM"},
	{"", "/api/vApp/vapp", "", []string{rightVAppEdit}, "VDC_UPDATE_VAPP"},
	{http.MethodPost, "/api/vdc/disk", "", []string{rightDiskCreate}, "VDC_CREATE_DISK"},
	{http.MethodDelete, "/api/disk", "/disk", []string{rightDiskDelete}, "VDC_DELETE_DISK"},
	{"", "/api/disk", "", []string{rightDiskEdit}, "VDC_UPDATE_DISK"},
	{http.MethodPost, "/api/admin/org/catalogs", "", []string{rightCatalogCreate}, "CATALOG_CREATE"},
	{http.MethodDelete, "/api/admin/catalog", "/catalog", []string{rightCatalogCreate}, "CATALOG_DELETE"},
	{"", "/api/admin/catalog/action/publish", "", []string{rightPublish}, "CATALOG_PUBLISH"},
	{"", "/api/catalog/action/publish", "", []string{rightPublish}, "CATALOG_PUBLISH"},
	{"", "/api/admin/catalog", "", []string{rightCatalogEdit}, "CATALOG_UPDATE"},
	{"", "/api/catalog/action/upload", "", []string{rightMediaUpload}, "CATALOG_UPLOAD_MEDIA"},
	{"", "/api/catalog/action/captureVApp", "", []string{rightCatalogAdd}, "VAPP_CAPTURE"},
	{"", "/api/vAppTemplate/vappTemplate", "", []string{rightMediaEdit}, "VAPP_TEMPLATE_EDIT"},
	{"", "/api/media", "", []string{rightMediaEdit}, "MEDIA_EDIT"},
	{"", "/api/catalogItem", "", []string{rightCatalogEdit}, "CATALOG_ITEM_EDIT"},
	{"", "/cloudapi/1.0.0/roles", "", []string{rightRoleWrite}, "ROLE_MANAGE"},
	{"", "/cloudapi/1.0.0/tokens", "", []string{rightOwnClients}, "TOKEN_MANAGE"},
	{http.MethodGet, "/cloudapi/1.0.0/serviceAccounts", "", []string{rightAccountView}, "SERVICE_ACCOUNT_VIEW"},
	{"", "/cloudapi/1.0.0/serviceAccounts", "", []string{rightAccountManage}, "SERVICE_ACCOUNT_MANAGE"},
	{"", "/cloudapi/1.0.0/deviceLookup/grant", "", []string{rightAccountManage}, "SERVICE_ACCOUNT_MANAGE"},
}

func (n *Need) fits(method, path string) bool {
	return (n.Method == method || n.Method == "" && method != http.MethodGet) && strings.HasPrefix(path, n.Under) &&
		strings.HasSuffix(path, n.End)
}

// Permitted returns an error if the caller's role does not permit the request. It is the error that VCD returns for
// entities that do not exist.
func Permitted(r *api.Request) error {
	if r.Session == nil || r.Session.Provider() {
		return nil
	}
	_, path, _ := strings.Cut(r.Operation, " ")
	for _, list := range [][]Need{Needs, NetworkNeeds} {
		for i := range list {
			if n := &list[i]; n.fits(r.Method, path) {
				return PermittedBy(r, n)
			}
		}
	}
	return nil
}

// PermittedBy returns an error if the caller has none of the rights of a need.
func PermittedBy(r *api.Request, n *Need) error {
	if slices.ContainsFunc(n.Rights, func(right string) bool { return HasRight(r, right) }) {
		return nil
	}
	return store.Refuse(http.StatusForbidden, store.CodeForbidden,
		"Either you need some or all of the following rights [%s] to perform operations [%s] for %s or the target entity is invalid.",
		strings.Join(n.Rights, ", "), n.Operation, cmp.Or(r.Vars["id"], r.Vars["gateway"], r.URL.Path))
}

// MayUseExtraConfig reports whether the caller may see and change the extra configuration of VMs.
func MayUseExtraConfig(r *api.Request) bool {
	return !r.Cloud.Assume.ExtraConfigTakesRight || r.Session.Provider() || HasRight(r, RightExtraConfig)
}

// HasRight reports whether the caller has a right. Both the caller's role and a rights bundle that is published to the
// organization must contain the right, or the same other right that implies it.
func HasRight(r *api.Request, name string) bool {
	if !r.Cloud.Assume.RolesAreExact && !roleIsKnown(r.Session, r.Cloud.Store, r.Session.Role) {
		return true
	}
	return slices.ContainsFunc(impliedBy(name), func(right string) bool {
		return roleHas(r, right) && rightIsPublished(r, right)
	})
}

// roleIsKnown reports whether the rights of a role are known. Those of administrators are not.
func roleIsKnown(session *store.Session, st *store.Store, role string) bool {
	_, builtIn := builtInRole(role)
	return builtIn && role != "Organization Administrator" || customRole(session, st, role) != nil
}

// roleHas reports whether the caller's role has a right. An undefined role has no rights.
func roleHas(r *api.Request, right string) bool {
	if d := customRole(r.Session, r.Cloud.Store, r.Session.Role); d != nil {
		return slices.Contains(d.Refs["rights"], RightURN(r.Cloud.IDs, right))
	}
	have, _ := builtInRole(r.Session.Role)
	return slices.Contains(have, right)
}

// customRole returns a role that the organization defined itself, or nil if there is none of this name.
func customRole(session *store.Session, st *store.Store, name string) *store.Object {
	for _, d := range st.Documents[RolesPath] {
		readOnly, _ := d.Body["readOnly"].(bool)
		if d.OrgID == session.OrgID && store.Text(d.Body, "name") == name && !readOnly {
			return d
		}
	}
	return nil
}

// rightIsPublished reports whether a rights bundle that is published to the caller's organization contains a right.
func rightIsPublished(r *api.Request, right string) bool {
	urn := RightURN(r.Cloud.IDs, right)
	for _, d := range r.Cloud.Store.Documents[BundlesPath] {
		if !slices.Contains(d.Refs["rights"], urn) {
			continue
		}
		if store.Text(d.Body, "name") == defaultBundleName ||
			slices.Contains(d.Refs["tenants"], store.URN("org", r.Session.OrgID)) {
			return true
		}
	}
	return false
}

// impliedBy returns a right and the rights that imply it.
func impliedBy(name string) []string {
	out := []string{name}
	for _, x := range Rights() {
		if slices.Contains(x.implied, name) {
			out = append(out, x.Name)
		}
	}
	return out
}
