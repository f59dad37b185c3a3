// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func vdcChangeRoutes(add api.AddRoute) {
	add("POST", "/api/admin/org/{id}/vdcsparams", createVDC, cloud.LatencyWrite)
	add("PUT", "/api/admin/vdc/{id}", putVDC, cloud.LatencyWrite)
	add("DELETE", "/api/vdc/{id}", deleteVDC, cloud.LatencyWrite)
	add("DELETE", "/api/admin/vdc/{id}", deleteVDC, cloud.LatencyWrite)
}

// guaranteedSince is the first API version in which a VDC that includes the memory overhead requires a guaranteed share
// of memory.
const guaranteedSince = "39.0"

// createVDC creates a VDC on the only provider VDC. The simulator stores its capacity but does not enforce it.
func createVDC(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("VDC_CREATE"); err != nil {
		return nil, err
	}
	org, tree, err := api.Parsed(access.OwnOrg)(r)
	if err != nil {
		return nil, err
	}
	v := store.VDC{
		Name:            tree.Attr("name"),
		Description:     tree.Str("Description"),
		Policies:        []string{"System Default"},
		AllocationModel: tree.Str("AllocationModel"),
	}
	if v.Name == "" || store.Bare(tree.At("ProviderVdcReference").Attr("href")) != vdcs.ProviderID(r.Cloud) {
		return nil, store.BadRequest("A VDC needs a name and a provider VDC.")
	}
	if slices.ContainsFunc(org.VDCs, func(x store.VDC) bool { return x.Name == v.Name }) {
		return nil, store.DuplicateName(v.Name)
	}
	if r.Version >= guaranteedSince && tree.Bool("IncludeMemoryOverhead") && tree.Str("ResourceGuaranteedMemory") == "" {
		return nil, store.BadRequest("The guaranteed share of memory is missing.")
	}
	vdcs.ReadVDC(&v, tree)
	v.ID = r.Cloud.IDs.Next("vdc")
	addVDCProfiles(r, &v, tree)
	org.VDCs = append(org.VDCs, v)
	r.StartTask(store.Work{Op: "create vdc", Creates: true}, v.Entity(), []string{v.ID})
	r.Vars["id"] = v.ID
	res, err := vdcs.GetAdminVDC(r)
	if err == nil {
		res.Status = http.StatusCreated
	}
	return res, err
}

// putVDC changes a VDC except for its storage. Without IsEnabled the VDC is disabled, and without OverCommitAllowed it
// does not overcommit: go-vcloud-director omits fields that are false.
func putVDC(r *api.Request) (*api.Response, error) {
	org, v, tree, err := vdcs.VDCToChange(r, "VDC_UPDATE")
	if err != nil {
		return nil, err
	}
	if err := r.Cloud.Tasks.CheckIdle(v.ID); err != nil {
		return nil, err
	}
	name := tree.Attr("name")
	if name == "" {
		return nil, store.BadRequest("A VDC needs a name.")
	}
	if slices.ContainsFunc(org.VDCs, func(x store.VDC) bool { return x.Name == name && x.ID != v.ID }) {
		return nil, store.DuplicateName(name)
	}
	if model := tree.Str("AllocationModel"); model != "" && model != vdcs.AllocationModel(v) {
		return nil, store.BadRequest("The allocation model of VDC %q cannot be changed from %s to %s.", v.Name,
			vdcs.AllocationModel(v), model)
	}
	if err := vdcs.ReadDefaultPolicy(r.Cloud.Store, v, tree); err != nil {
		return nil, err
	}
	renameVDC(v, org, name)
	v.Description = tree.Str("Description")
	vdcs.ReadVDC(v, tree)
	v.Disabled = !tree.Bool("IsEnabled")
	v.Compute.NoOvercommit = !tree.Bool("OverCommitAllowed")
	return r.Start(store.Work{Op: cloud.OpDone}, v.Entity(), []string{v.ID}), nil
}

// renameVDC renames a VDC, and updates the templates and media that refer to it by name.
func renameVDC(v *store.VDC, org *store.Org, name string) {
	for c := range org.Catalogs {
		for t := range org.Catalogs[c].Templates {
			if tpl := &org.Catalogs[c].Templates[t]; tpl.VDC == v.Name {
				tpl.VDC = name
			}
		}
		for m := range org.Catalogs[c].Media {
			if media := &org.Catalogs[c].Media[m]; media.VDC == v.Name {
				media.VDC = name
			}
		}
	}
	v.Name = name
}

// addVDCProfiles adds the requested storage profiles of the provider to a VDC. It ignores profiles that the provider
// does not have.
func addVDCProfiles(r *api.Request, v *store.VDC, tree *xmltree.Node) {
	for _, x := range tree.All("VdcStorageProfile") {
		if p, found := vdcs.ReadProfileParams(r.Cloud, x); found {
			v.StorageProfiles = append(v.StorageProfiles, p)
		}
	}
}

// deleteVDC removes a VDC. Removing one that is not empty requires the recursive parameter.
func deleteVDC(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("VDC_DELETE"); err != nil {
		return nil, err
	}
	org, v, err := vdcs.OwnVDC(r)
	if err != nil {
		return nil, err
	}
	if err := r.Cloud.Tasks.CheckIdle(v.ID); err != nil {
		return nil, err
	}
	if g := org.GroupOf(v.ID); g != nil {
		return nil, documents.InUse("VDC", v.Name, "data center group "+g.Name)
	}
	if r.Query.Get("recursive") != "true" {
		if by := objectInVDC(r.Cloud, v); by != "" {
			return nil, documents.InUse("VDC", v.Name, by)
		}
	}
	return r.Start(store.Work{Op: "delete vdc"}, v.Entity(), []string{v.ID}), nil
}

// objectInVDC returns the kind and name of an object in a VDC, or an empty string if the VDC is empty.
func objectInVDC(s *cloud.Cloud, v *store.VDC) string {
	for _, vapp := range store.Sorted(s.Store.VApps) {
		if vapp.VDCID == v.ID {
			return "vApp " + vapp.Name
		}
	}
	switch {
	case len(v.Networks) > 0:
		return "network " + v.Networks[0].Name
	case len(v.EdgeGateways) > 0:
		return "edge gateway " + v.EdgeGateways[0].Name
	}
	return ""
}

func commitDeleteVDC(s *cloud.Cloud, t *store.Task) error {
	org, v := s.Store.VDC(t.Owner.ID)
	if v == nil {
		return cloud.Gone("VDC", t.Owner.ID)
	}
	for _, vapp := range store.Sorted(s.Store.VApps) {
		if vapp.VDCID == v.ID {
			machines.VAppsOf(s).Remove(vapp)
		}
	}
	for _, n := range v.Networks {
		s.Store.Forget(n.ID)
	}
	for _, g := range v.EdgeGateways {
		documents.RemoveDocumentsOf(s, g.ID)
	}
	id := v.ID
	s.Store.Forget(id)
	org.VDCs = slices.DeleteFunc(org.VDCs, func(x store.VDC) bool { return x.ID == id })
	return nil
}

// Operations returns the operations on VDCs.
func Operations() map[string]cloud.Operation {
	return cloud.Changes(cloud.Changed{Kind: "vdc", Title: "Virtual Datacenter", Remove: commitDeleteVDC})
}
