// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/entities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func adminOrgRoutes(add api.AddRoute) {
	add("POST", "/api/admin/orgs", createOrg, cloud.LatencyWrite)
	add("PUT", "/api/admin/org/{id}", api.With2(api.Parsed(access.OwnOrg), putOrg), cloud.LatencyWrite)
	add("DELETE", "/api/admin/org/{id}", deleteOrg, cloud.LatencyWrite)
	add("POST", "/api/admin/org/{id}/action/disable",
		func(r *api.Request) (*api.Response, error) { return enableOrg(r, false) }, cloud.LatencyWrite)
	add("POST", "/api/admin/org/{id}/action/enable", func(r *api.Request) (*api.Response, error) { return enableOrg(r, true) },
		cloud.LatencyWrite)
	add("POST", "/api/admin/org/{id}/users", api.With2(api.Parsed(access.OwnOrg), createUser), cloud.LatencyWrite)
	add("PUT", "/api/admin/user/{id}", putUser, cloud.LatencyWrite)
	add("DELETE", "/api/admin/user/{id}", deleteUser, cloud.LatencyWrite)
	add("POST", "/api/admin/user/{id}/action/takeOwnership", takeOwnership, cloud.LatencyWrite)
}

// orgSettingsNode returns the Settings element of an organization.
func orgSettingsNode(o *store.Org) *xmltree.Node {
	T := xmltree.T
	s := o.Settings
	secs := func(d store.Duration) int64 { return int64(time.Duration(d).Seconds()) }
	return xmltree.New("Settings",
		xmltree.New("OrgGeneralSettings", T("CanPublishCatalogs", s.CanPublishCatalogs),
			T("CanPublishExternally", s.CanPublishExternally),
			T("CanSubscribe", s.CanSubscribe), T("DeployedVMQuota", s.DeployedVMQuota),
			T("StoredVmQuota", s.StoredVMQuota),
			T("UseServerBootSequence", s.ServerBootSequence), T("DelayAfterPowerOnSeconds", secs(s.PowerOnDelay))),
		xmltree.New("VAppLeaseSettings", T("DeleteOnStorageLeaseExpiration", !s.KeepExpired),
			T("DeploymentLeaseSeconds", secs(o.RuntimeLease)),
			T("StorageLeaseSeconds", secs(o.StorageLease)), T("PowerOffOnRuntimeLeaseExpiration", !s.KeepRunning)),
		xmltree.New("VAppTemplateLeaseSettings", T("DeleteOnStorageLeaseExpiration", !s.KeepExpiredTemplates),
			T("StorageLeaseSeconds", secs(s.TemplateLease))))
}

// readOrgSettings applies an AdminOrg document. Groups of settings that it omits keep their values.
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
		s.PowerOnDelay = store.Duration(machines.Seconds(delay))
		s.ServerBootSequence = g.Bool("UseServerBootSequence")
	}
	if l := tree.At("Settings", "VAppLeaseSettings"); l != nil {
		runtime, _ := l.Int("DeploymentLeaseSeconds")
		storage, _ := l.Int("StorageLeaseSeconds")
		o.RuntimeLease = store.Duration(machines.Seconds(runtime))
		o.StorageLease = store.Duration(machines.Seconds(storage))
		s.KeepExpired = !l.Bool("DeleteOnStorageLeaseExpiration")
		s.KeepRunning = !l.Bool("PowerOffOnRuntimeLeaseExpiration")
	}
	if l := tree.At("Settings", "VAppTemplateLeaseSettings"); l != nil {
		lease, _ := l.Int("StorageLeaseSeconds")
		s.TemplateLease = store.Duration(machines.Seconds(lease))
		s.KeepExpiredTemplates = !l.Bool("DeleteOnStorageLeaseExpiration")
	}
}

func createOrg(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("ORG_CREATE"); err != nil {
		return nil, err
	}
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	org := store.Org{ID: r.Cloud.IDs.Next("org"), Name: tree.Attr("name")}
	if err := api.CheckName("organization", org.Name); err != nil {
		return nil, err
	}
	if r.Cloud.Store.OrgByName(org.Name) != nil {
		return nil, store.DuplicateName(org.Name)
	}
	readOrgSettings(&org, tree)
	r.Cloud.Store.Model.Orgs = append(r.Cloud.Store.Model.Orgs, org)
	entities.SeedDocuments(r.Cloud, &org)
	return r.Done(org.Entity()), nil
}

func putOrg(r *api.Request, org *store.Org, tree *xmltree.Node) (*api.Response, error) {
	if name := tree.Attr("name"); name != "" && name != org.Name {
		return nil, store.BadRequest("The name of the organization %q cannot be changed.", org.Name)
	}
	readOrgSettings(org, tree)
	return r.Done(org.Entity()), nil
}

func enableOrg(r *api.Request, on bool) (*api.Response, error) {
	org, err := access.OwnOrg(r)
	if err != nil {
		return nil, err
	}
	org.Disabled = !on
	return api.NoContent(), nil
}

// deleteOrg removes a disabled organization. Removing one that has VDCs requires the recursive parameter.
func deleteOrg(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("ORG_DELETE"); err != nil {
		return nil, err
	}
	org, err := access.OwnOrg(r)
	if err != nil {
		return nil, err
	}
	if !org.Disabled {
		return nil, store.BadRequest("The organization %q must be disabled before it is deleted.", org.Name)
	}
	if len(org.VDCs) > 0 && r.Query.Get("recursive") != "true" {
		return nil, store.BadRequest("The organization %q is not empty.", org.Name)
	}
	e := org.Entity()
	r.Cloud.Store.Model.Orgs = slices.DeleteFunc(slices.Clone(r.Cloud.Store.Model.Orgs),
		func(o store.Org) bool { return o.ID == e.ID })
	for path, list := range r.Cloud.Store.Documents {
		r.Cloud.Store.Documents[path] = slices.DeleteFunc(slices.Clone(list),
			func(d *store.Object) bool { return d.OrgID == e.ID })
	}
	return r.Done(e), nil
}
