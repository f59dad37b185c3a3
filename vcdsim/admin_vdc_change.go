// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func vdcChangeRoutes(add addRoute) {
	add("POST", "/api/admin/org/{id}/vdcsparams", createVDC, latencyWrite)
	add("PUT", "/api/admin/vdc/{id}", putVDC, latencyWrite)
	add("DELETE", "/api/vdc/{id}", deleteVDC, latencyWrite)
	add("DELETE", "/api/admin/vdc/{id}", deleteVDC, latencyWrite)
}

// createVDC creates a VDC on the one provider VDC. Its capacity is stored and limits nothing.
func createVDC(r *request) (*response, error) {
	if err := r.byProvider("VDC_CREATE"); err != nil {
		return nil, err
	}
	org, tree, err := parsed(ownOrg)(r)
	if err != nil {
		return nil, err
	}
	v := store.VDC{
		Name:            tree.Attr("name"),
		Description:     tree.Str("Description"),
		Policies:        []string{"System Default"},
		AllocationModel: tree.Str("AllocationModel"),
	}
	if v.Name == "" || store.Bare(tree.At("ProviderVdcReference").Attr("href")) != providerID(r.cloud) {
		return nil, store.BadRequest("A VDC needs a name and a provider VDC.")
	}
	if slices.ContainsFunc(org.VDCs, func(x store.VDC) bool { return x.Name == v.Name }) {
		return nil, store.DuplicateName(v.Name)
	}
	if tree.Bool("IncludeMemoryOverhead") && tree.Str("ResourceGuaranteedMemory") == "" {
		return nil, store.BadRequest("The guaranteed share of memory is missing.")
	}
	readVDC(&v, tree)
	v.ID = r.cloud.ids.Next("vdc")
	readVDCProfiles(r, &v, tree)
	org.VDCs = append(org.VDCs, v)
	r.startTask(store.Work{Op: "create vdc", Creates: true}, v.Entity(), []string{v.ID})
	r.vars["id"] = v.ID
	res, err := getAdminVDC(r)
	if err == nil {
		res.status = http.StatusCreated
	}
	return res, err
}

// vdcToChange finds the VDC in the path and parses the body, for a provider who has a right.
func vdcToChange(r *request, right string) (*store.Org, *store.VDC, *xmltree.Node, error) {
	if err := r.byProvider(right); err != nil {
		return nil, nil, nil, err
	}
	org, v, err := ownVDC(r)
	if err != nil {
		return nil, nil, nil, err
	}
	tree, err := r.tree()
	return org, v, tree, err
}

// putVDC changes a VDC except for its storage. Without IsEnabled the VDC is disabled, and without the field it does not
// overcommit: go-vcloud-director omits what is false.
func putVDC(r *request) (*response, error) {
	org, v, tree, err := vdcToChange(r, "VDC_UPDATE")
	if err != nil {
		return nil, err
	}
	if err := r.cloud.tasks.checkIdle(v.ID); err != nil {
		return nil, err
	}
	name := tree.Attr("name")
	if name == "" {
		return nil, store.BadRequest("A VDC needs a name.")
	}
	if slices.ContainsFunc(org.VDCs, func(x store.VDC) bool { return x.Name == name && x.ID != v.ID }) {
		return nil, store.DuplicateName(name)
	}
	renameVDC(v, org, name)
	v.Description = tree.Str("Description")
	readVDC(v, tree)
	v.Disabled = !tree.Bool("IsEnabled")
	v.Compute.NoOvercommit = !tree.Bool("OverCommitAllowed")
	return r.start(store.Work{Op: opDone}, v.Entity(), []string{v.ID}), nil
}

// renameVDC gives a VDC another name, also where it is known by it.
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

// readVDCProfiles gives a VDC the storage profiles of the provider that are asked for.
func readVDCProfiles(r *request, v *store.VDC, tree *xmltree.Node) {
	for _, x := range tree.All("VdcStorageProfile") {
		if p, found := readProfileParams(r, x); found {
			v.StorageProfiles = append(v.StorageProfiles, p)
		}
	}
}

// deleteVDC removes a VDC; by force and with what is in it.
func deleteVDC(r *request) (*response, error) {
	if err := r.byProvider("VDC_DELETE"); err != nil {
		return nil, err
	}
	org, v, err := ownVDC(r)
	if err != nil {
		return nil, err
	}
	if err := r.cloud.tasks.checkIdle(v.ID); err != nil {
		return nil, err
	}
	if g := org.GroupOf(v.ID); g != nil {
		return nil, inUse("VDC", v.Name, "data center group "+g.Name)
	}
	if r.query.get("recursive") != "true" {
		if by := vdcHolds(r.cloud, v); by != "" {
			return nil, inUse("VDC", v.Name, by)
		}
	}
	return r.start(store.Work{Op: "delete vdc"}, v.Entity(), []string{v.ID}), nil
}

// vdcHolds returns the name of something in a VDC, empty if there is nothing.
func vdcHolds(s *cloud, v *store.VDC) string {
	for _, vapp := range store.Sorted(s.store.VApps) {
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

func commitDeleteVDC(s *cloud, t *store.Task) error {
	org, v := s.store.VDC(t.Owner.ID)
	if v == nil {
		return gone("VDC", t.Owner.ID)
	}
	for _, vapp := range store.Sorted(s.store.VApps) {
		if vapp.VDCID == v.ID {
			vappsOf(s).remove(vapp)
		}
	}
	for _, g := range v.EdgeGateways {
		removeDocumentsOf(s, g.ID)
	}
	id := v.ID
	org.VDCs = slices.DeleteFunc(org.VDCs, func(x store.VDC) bool { return x.ID == id })
	return nil
}

// removeDocumentsOf removes the documents that belong to something.
func removeDocumentsOf(s *cloud, parent string) {
	for path := range s.store.Documents {
		s.store.Documents[path] = slices.DeleteFunc(slices.Clone(s.store.Documents[path]),
			func(d *store.Object) bool { return d.Parent == parent })
	}
}

// vdcNetworkProfile is what a VDC uses of NSX.
func vdcNetworkProfile() *setting {
	return &setting{
		path:  "1.0.0/vdcs/{vdc}/networkProfile",
		kind:  "vdcNetworkProfile",
		title: "VDC Network Profile",
		plain: true,
		scope: func(r *request) (scope, error) {
			org, v := r.cloud.store.VDC(store.Bare(r.vars["vdc"]))
			if v == nil || !r.session.Sees(org.ID) {
				return scope{}, store.Forbidden("VDC_VIEW", r.vars["vdc"])
			}
			return scope{org.ID, v.ID, []string{v.ID}}, nil
		},
		initial: always(map[string]any{
			"primaryEdgeCluster":                   nil,
			"secondaryEdgeCluster":                 nil,
			"servicesEdgeCluster":                  nil,
			"vdcNetworkSegmentProfileTemplateRef":  nil,
			"vappNetworkSegmentProfileTemplateRef": nil,
		}),
		show: func(_ *request, _ scope, out map[string]any) {
			if m, ok := out["servicesEdgeCluster"].(map[string]any); ok && store.Text(m, "backingId") != "" {
				out["servicesEdgeCluster"] = map[string]any{
					"backingId":      m["backingId"],
					"edgeClusterRef": map[string]any{"name": edgeCluster, "id": m["backingId"]},
				}
			}
		},
	}
}

// vdcOperations are the operations on VDCs.
func vdcOperations() map[string]operation {
	return map[string]operation{
		"create vdc": networkOperation("create", "vdc", "Virtual Datacenter", nothing),
		"update vdc": networkOperation("update", "vdc", "Virtual Datacenter", nothing),
		"delete vdc": networkOperation("delete", "vdc", "Virtual Datacenter", commitDeleteVDC),
	}
}
