// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func standaloneRoutes(add api.AddRoute) {
	add("POST", "/api/vdc/{id}/action/createVm",
		func(r *api.Request) (*api.Response, error) { return createStandaloneVM(r, "CreateVm") }, cloud.LatencyWrite)
	add("POST", "/api/vdc/{id}/action/instantiateVmFromTemplate", func(r *api.Request) (*api.Response, error) {
		return createStandaloneVM(r, "SourcedVmTemplateItem")
	}, cloud.LatencyWrite)
}

// createStandaloneVM creates a VM in a separate vApp, which VCD deletes with the VM. The element decides whether the VM
// is new or comes from a template.
func createStandaloneVM(r *api.Request, element string) (*api.Response, error) {
	org, vdc, err := vdcs.OwnVDC(r)
	if err != nil {
		return nil, err
	}
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	item := tree.At(element)
	if item == nil {
		return nil, store.BadRequest("Bad request - %s is missing.", element)
	}
	v := &store.VApp{
		ID:         r.Cloud.IDs.Next("vapp"),
		OrgID:      org.ID,
		VDCID:      vdc.ID,
		OwnerID:    r.Session.UserID,
		Status:     store.Unresolved,
		AutoNature: true,
		Created:    r.Cloud.Clock.Now(),
		Metadata:   map[string]store.Metadata{},
		Lease:      org.NewLease(),
	}
	vms, err := newStandaloneVMs(r, vdc, v, tree, item)
	if err != nil {
		return nil, err
	}
	v.Name = vms[0].Name + "-" + v.ID
	if d := tree.Str("Description"); d != "" {
		vms[0].Description = d
	}
	r.Cloud.Store.VApps[v.ID] = v
	w := store.Work{Op: cloud.OpComposeVMs, VApp: v.ID, VMs: AddVMs(r.Cloud.Store, vms), PowerOn: tree.Attr("powerOn") == "true"}
	return r.Start(w, v.Entity(), machines.VAppsOf(r.Cloud).Locks(v)), nil
}

// newStandaloneVMs returns the only VM of v, and adds the networks to v that the VM's NICs connect to.
func newStandaloneVMs(r *api.Request, vdc *store.VDC, v *store.VApp, tree, item *xmltree.Node) ([]*store.VM, error) {
	params := item.At("VmTemplateInstantiationParams")
	if params != nil {
		params.Name = "InstantiationParams"
	}
	section := item.At("NetworkConnectionSection")
	if section == nil {
		section = params.At("NetworkConnectionSection")
	}
	v.Networks = append(v.Networks, bridges(r.Cloud, vdc, v, section)...)
	if item.Name == "CreateVm" {
		vm, err := newRawVM(r, vdc, v, item)
		if err != nil {
			return nil, err
		}
		return []*store.VM{vm}, CheckVMQuota(r.Cloud, vdc, 1)
	}
	if policy := tree.At("ComputePolicy"); policy != nil {
		item.Add(policy)
	}
	setItemName(item, tree.Attr("name"))
	vms, err := newVMsFromTemplate(r, vdc, v, item)
	if err != nil {
		return nil, err
	}
	if len(vms) != 1 {
		return nil, store.BadRequest("The source of a standalone VM has to be one VM.")
	}
	return vms, CheckVMQuota(r.Cloud, vdc, 1)
}

// setItemName sets the name of an item's VM unless the item has one. VMware's SDK omits it.
func setItemName(item *xmltree.Node, name string) {
	if name == "" || item.Str("VmGeneralParams", "Name") != "" {
		return
	}
	general := item.At("VmGeneralParams")
	if general == nil {
		general = xmltree.New("VmGeneralParams")
		item.Add(general)
	}
	general.Add(xmltree.T("Name", name))
}

// bridges returns the vApp networks that a network connection section needs and v lacks. Each one connects the vApp to
// a network of the VDC.
func bridges(c *cloud.Cloud, vdc *store.VDC, v *store.VApp, section *xmltree.Node) []store.VAppNetwork {
	var out []store.VAppNetwork
	for _, connection := range section.All("NetworkConnection") {
		name := connection.Attr("network")
		n := networkByName(c.Store, vdc, name)
		known := slices.ContainsFunc(out, func(o store.VAppNetwork) bool { return o.Name == name })
		if n != nil && !known && v.Network(name) == nil {
			out = append(out, store.VAppNetwork{ID: c.IDs.Next("network"), Name: name, ParentID: n.ID, FenceMode: "bridged"})
		}
	}
	return out
}

// networkByName returns a network of a VDC, or one that the VDC's group shares with it. It returns nil if no network
// has the name.
func networkByName(st *store.Store, vdc *store.VDC, name string) *store.Network {
	org, _ := st.VDC(vdc.ID)
	for i := range org.VDCs {
		in := &org.VDCs[i]
		for j := range in.Networks {
			if n := &in.Networks[j]; n.Name == name && (in.ID == vdc.ID || org.Shares(n, vdc)) {
				return n
			}
		}
	}
	return nil
}
