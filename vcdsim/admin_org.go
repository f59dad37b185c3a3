// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const adminOrgType = "application/vnd.vmware.admin.organization+xml"

// OrgSettings are the settings of an Org that change nothing in the simulator but are kept.
type OrgSettings struct {
	CanPublishCatalogs   bool
	CanPublishExternally bool
	CanSubscribe         bool
	DeployedVMQuota      int64
	StoredVMQuota        int64
	PowerOnDelay         time.Duration
	// KeepExpired and KeepRunning invert the defaults: what expired is deleted, and powered off.
	KeepExpired          bool
	KeepRunning          bool
	TemplateLease        time.Duration
	KeepExpiredTemplates bool
}

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

// settingsNode is the Settings element of an organization.
func (o *Org) settingsNode() *xmltree.Node {
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

// readSettings applies the settings in an AdminOrg; those it does not name stay.
func (o *Org) readSettings(tree *xmltree.Node) {
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
func (r *request) done(e Entity) *response {
	return r.start(Work{Op: opDone}, e, nil)
}

// acceptedJSON answers 202 without a body, as cloudapi does, for what was done at once.
func (r *request) acceptedJSON(e Entity) *response {
	task := r.sim.tasks.start(r, Work{Op: opDone}, e, nil)
	return &response{status: http.StatusAccepted, header: map[string]string{"Location": r.href("task", task.ID)}}
}

func (o *Org) entity() Entity { return Entity{Kind: "org", ID: o.ID, Name: o.Name} }

// byProvider refuses callers that are not providers.
func (r *request) byProvider(operation string) error {
	if !r.session.provider() {
		return forbidden(operation, r.URL.Path)
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
	org := Org{ID: r.sim.ids.next("org"), Name: tree.Attr("name")}
	if err := checkName("organization", org.Name); err != nil {
		return nil, err
	}
	if r.sim.store.orgByName(org.Name) != nil {
		return nil, duplicateName(org.Name)
	}
	org.readSettings(tree)
	r.sim.store.Model.Orgs = append(r.sim.store.Model.Orgs, org)
	seedDocuments(r.sim, &org)
	return r.done(org.entity()), nil
}

func ownOrg(r *request) (*Org, error) {
	o := r.sim.store.org(bare(r.vars["id"]))
	if o == nil || !r.sees(o.ID) {
		return nil, forbidden("ORG_VIEW", r.vars["id"])
	}
	return o, nil
}

func putOrg(r *request, org *Org, tree *xmltree.Node) (*response, error) {
	org.readSettings(tree)
	return r.done(org.entity()), nil
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
		return nil, badRequest("The organization %q must be disabled before it is deleted.", org.Name)
	}
	if len(org.VDCs) > 0 && r.query.get("recursive") != "true" {
		return nil, badRequest("The organization %q is not empty.", org.Name)
	}
	e := org.entity()
	r.sim.store.Model.Orgs = slices.DeleteFunc(slices.Clone(r.sim.store.Model.Orgs),
		func(o Org) bool { return o.ID == e.ID })
	for path, list := range r.sim.store.Documents {
		r.sim.store.Documents[path] = slices.DeleteFunc(slices.Clone(list),
			func(d *document) bool { return d.OrgID == e.ID })
	}
	return r.done(e), nil
}
