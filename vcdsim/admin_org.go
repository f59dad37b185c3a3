// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const adminOrgType = "application/vnd.vmware.admin.organization+xml"

func adminOrgRoutes(add addRoute) {
	add("POST", "/api/admin/orgs", createOrg, latencyWrite)
	add("PUT", "/api/admin/org/{id}", with2(parsed(ownOrg), putOrg), latencyWrite)
	add("DELETE", "/api/admin/org/{id}", deleteOrg, latencyWrite)
	add("POST", "/api/admin/org/{id}/action/disable",
		func(r *request) (*response, error) { return enableOrg(r, false) }, latencyWrite)
	add("POST", "/api/admin/org/{id}/action/enable", func(r *request) (*response, error) { return enableOrg(r, true) },
		latencyWrite)
	add("POST", "/api/admin/org/{id}/users", with2(parsed(ownOrg), createUser), latencyWrite)
	add("PUT", "/api/admin/user/{id}", putUser, latencyWrite)
	add("DELETE", "/api/admin/user/{id}", deleteUser, latencyWrite)
	add("POST", "/api/admin/user/{id}/action/takeOwnership", takeOwnership, latencyWrite)
}

// orgSettingsNode is the Settings element of an organization.
func orgSettingsNode(o *store.Org) *xmltree.Node {
	T := xmltree.T
	s := o.Settings
	secs := func(d time.Duration) int64 { return int64(d.Seconds()) }
	return xmltree.New("Settings",
		xmltree.New("OrgGeneralSettings", T("CanPublishCatalogs", s.CanPublishCatalogs),
			T("CanPublishExternally", s.CanPublishExternally),
			T("CanSubscribe", s.CanSubscribe), T("DeployedVMQuota", s.DeployedVMQuota),
			T("StoredVmQuota", s.StoredVMQuota),
			T("UseServerBootSequence", false), T("DelayAfterPowerOnSeconds", secs(s.PowerOnDelay))),
		xmltree.New("VAppLeaseSettings", T("DeleteOnStorageLeaseExpiration", !s.KeepExpired),
			T("DeploymentLeaseSeconds", secs(o.RuntimeLease)),
			T("StorageLeaseSeconds", secs(o.StorageLease)), T("PowerOffOnRuntimeLeaseExpiration", !s.KeepRunning)),
		xmltree.New("VAppTemplateLeaseSettings", T("DeleteOnStorageLeaseExpiration", !s.KeepExpiredTemplates),
			T("StorageLeaseSeconds", secs(s.TemplateLease))))
}

// readOrgSettings applies the settings in an AdminOrg; those it does not name stay.
func readOrgSettings(o *store.Org, tree *xmltree.Node) {
	o.FullName = tree.Str("FullName")
	o.Description = tree.Str("Description")
	o.Disabled = !tree.Bool("IsEnabled")
	s := &o.Settings
	if g := tree.At("Settings", "OrgGeneralSettings"); g != nil {
		s.CanPublishCatalogs = g.Bool("CanPublishCatalogs")
		s.CanPublishExternally = g.Bool("CanPublishExternally")
		s.CanSubscribe = g.Bool("CanSubscribe")
		s.DeployedVMQuota, _ = g.Int("DeployedVMQuota")
		s.StoredVMQuota, _ = g.Int("StoredVmQuota")
		delay, _ := g.Int("DelayAfterPowerOnSeconds")
		s.PowerOnDelay = seconds(delay)
	}
	if l := tree.At("Settings", "VAppLeaseSettings"); l != nil {
		runtime, _ := l.Int("DeploymentLeaseSeconds")
		storage, _ := l.Int("StorageLeaseSeconds")
		o.RuntimeLease = seconds(runtime)
		o.StorageLease = seconds(storage)
		s.KeepExpired = !l.Bool("DeleteOnStorageLeaseExpiration")
		s.KeepRunning = !l.Bool("PowerOffOnRuntimeLeaseExpiration")
	}
	if l := tree.At("Settings", "VAppTemplateLeaseSettings"); l != nil {
		lease, _ := l.Int("StorageLeaseSeconds")
		s.TemplateLease = seconds(lease)
		s.KeepExpiredTemplates = !l.Bool("DeleteOnStorageLeaseExpiration")
	}
}

// done answers 202 with a task for what was done at once.
func (r *request) done(e store.Entity) *response {
	return r.start(store.Work{Op: opDone}, e, nil)
}

// acceptedJSON answers 202 without a body, as cloudapi does, for what was done at once.
func (r *request) acceptedJSON(e store.Entity) *response {
	task := r.startTask(store.Work{Op: opDone}, e, nil)
	return &response{status: http.StatusAccepted, header: map[string]string{"Location": r.site.Href("task", task.ID)}}
}

// byProvider refuses callers that are not providers.
func (r *request) byProvider(operation string) error {
	if !r.session.Provider() {
		return store.Forbidden(operation, r.URL.Path)
	}
	return nil
}

func createOrg(r *request) (*response, error) {
	if err := r.byProvider("ORG_CREATE"); err != nil {
		return nil, err
	}
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	org := store.Org{ID: r.cloud.ids.Next("org"), Name: tree.Attr("name")}
	if err := checkName("organization", org.Name); err != nil {
		return nil, err
	}
	if r.cloud.store.OrgByName(org.Name) != nil {
		return nil, store.DuplicateName(org.Name)
	}
	readOrgSettings(&org, tree)
	r.cloud.store.Model.Orgs = append(r.cloud.store.Model.Orgs, org)
	seedDocuments(r.cloud, &org)
	return r.done(org.Entity()), nil
}

func ownOrg(r *request) (*store.Org, error) {
	o := r.cloud.store.Org(store.Bare(r.vars["id"]))
	if o == nil || !r.session.Sees(o.ID) {
		return nil, store.Forbidden("ORG_VIEW", r.vars["id"])
	}
	return o, nil
}

func putOrg(r *request, org *store.Org, tree *xmltree.Node) (*response, error) {
	readOrgSettings(org, tree)
	return r.done(org.Entity()), nil
}

func enableOrg(r *request, on bool) (*response, error) {
	org, err := ownOrg(r)
	if err != nil {
		return nil, err
	}
	org.Disabled = !on
	return noContent(), nil
}

// deleteOrg removes a disabled organization; one that has VDCs only with recursive.
func deleteOrg(r *request) (*response, error) {
	if err := r.byProvider("ORG_DELETE"); err != nil {
		return nil, err
	}
	org, err := ownOrg(r)
	if err != nil {
		return nil, err
	}
	if !org.Disabled {
		return nil, store.BadRequest("The organization %q must be disabled before it is deleted.", org.Name)
	}
	if len(org.VDCs) > 0 && r.query.get("recursive") != "true" {
		return nil, store.BadRequest("The organization %q is not empty.", org.Name)
	}
	e := org.Entity()
	r.cloud.store.Model.Orgs = slices.DeleteFunc(slices.Clone(r.cloud.store.Model.Orgs),
		func(o store.Org) bool { return o.ID == e.ID })
	for path, list := range r.cloud.store.Documents {
		r.cloud.store.Documents[path] = slices.DeleteFunc(slices.Clone(list),
			func(d *store.Object) bool { return d.OrgID == e.ID })
	}
	return r.done(e), nil
}
