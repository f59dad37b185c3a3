// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func vappRoutes(add addRoute) {
	add("POST", "/api/vdc/{id}/action/composeVApp", composeVApp, latencyWrite)
	add("POST", "/api/vdc/{id}/action/instantiateVAppTemplate", instantiateTemplate, latencyWrite)
	const vapp = "/api/vApp/vapp-{vapp}"
	add("GET", vapp, with(ownVApp, getVApp), latencyVApp)
	add("PUT", vapp, with2(parsed(idleVApp), putVApp), latencyWrite)
	add("DELETE", vapp, with(idleVApp, deleteVApp), latencyWrite)
	add("POST", vapp+"/action/recomposeVApp", with2(parsed(idleVApp), recomposeVApp), latencyWrite)
	add("GET", vapp+"/networkConfigSection", with(ownVApp, getVAppNetworks), latencyLegacy)
	add("PUT", vapp+"/networkConfigSection", with2(parsed(idleVApp), putVAppNetworks), latencyWrite)
	add("GET", vapp+"/leaseSettingsSection", with(ownVApp, getLease), latencyLegacy)
	add("PUT", vapp+"/leaseSettingsSection", with(ownVApp, putLease), latencyWrite)
	add("GET", vapp+"/productSections", with(ownVApp, getVAppProducts), latencyLegacy)
	add("PUT", vapp+"/productSections", with2(parsed(idleVApp), putVAppProducts), latencyWrite)
	add("GET", vapp+"/owner", with(ownVApp, getVAppOwner), latencyLegacy)
	add("PUT", vapp+"/owner", with2(parsed(ownVApp), putVAppOwner), latencyWrite)
	add("POST", vapp+"/action/deploy", with(idleVApp, deployVApp), latencyWrite)
	add("POST", vapp+"/action/undeploy", with(idleVApp, undeployVApp), latencyWrite)
	for _, action := range []string{"powerOn", "powerOff", "shutdown", "reboot", "reset", "suspend"} {
		add("POST", vapp+"/power/action/"+action, func(r *request) (*response, error) { return powerVApp(r, action) },
			latencyWrite)
	}
}

// vappByID finds a vApp that the caller may use as the request wants to.
func vappByID(r *request, id string) (*store.VApp, error) {
	v := r.cloud.store.VApps[id]
	if err := checkVApp(r, v, "VAPP_VIEW", id); err != nil {
		return nil, err
	}
	return v, nil
}

func ownVApp(r *request) (*store.VApp, error) { return vappByID(r, r.vars["vapp"]) }

// idleVApp finds the vApp in the path for a write.
func idleVApp(r *request) (*store.VApp, error) {
	v, err := ownVApp(r)
	if err != nil {
		return nil, err
	}
	return v, vappsOf(r.cloud).checkIdle(v)
}

func composeVApp(r *request) (*response, error) { return createVApp(r, opCompose) }

func instantiateTemplate(r *request) (*response, error) { return createVApp(r, opInstantiate) }

// createVApp makes a vApp: 201 with the vApp, which has the task in it.
func createVApp(r *request, op string) (*response, error) {
	org, vdc, err := ownVDC(r)
	if err != nil {
		return nil, err
	}
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	if err := mayUseVDC(vdc); err != nil {
		return nil, err
	}
	v, err := newVApp(r, org, vdc, tree)
	if err != nil {
		return nil, err
	}
	items := tree
	if op == opInstantiate {
		items = xmltree.New("", xmltree.New("SourcedItem", tree.Children))
	}
	vms, err := newVMs(r, vdc, v, items)
	if err != nil {
		return nil, err
	}
	r.cloud.store.VApps[v.ID] = v
	ids := addVMs(r.cloud.store, vms)
	if op == opCompose && len(ids) > 0 {
		op = opComposeVMs
	}
	w := store.Work{Op: op, VApp: v.ID, VMs: ids, PowerOn: tree.Attr("powerOn") == "true"}
	r.startTask(w, v.Entity(), vappsOf(r.cloud).locks(v))
	return createdVApp(r, v), nil
}

func createdVApp(r *request, v *store.VApp) *response {
	return xmlOK(vappNode(r, v)).createdAt(r.site.Href("vapp", v.ID))
}

func addVMs(st *store.Store, vms []*store.VM) []string {
	var out []string
	for _, vm := range vms {
		st.AddVM(vm)
		out = append(out, vm.ID)
	}
	return out
}

func getVApp(r *request, v *store.VApp) (*response, error) {
	return xmlOK(vappNode(r, v)), nil
}

// putVApp changes name and description.
func putVApp(r *request, v *store.VApp, tree *xmltree.Node) (*response, error) {
	w := store.Work{Op: opUpdateVApp, VApp: v.ID}
	if err := readVAppName(r.cloud.store, v, tree, &w); err != nil {
		return nil, err
	}
	return r.start(w, v.Entity(), []string{v.ID}), nil
}

// readVAppName reads a new name and description.
func readVAppName(st *store.Store, v *store.VApp, tree *xmltree.Node, w *store.Work) error {
	if name := tree.Attr("name"); name != "" && name != v.Name {
		for _, other := range st.VApps {
			if other.VDCID == v.VDCID && other.Name == name {
				return store.DuplicateName(name)
			}
		}
		w.Name = name
	}
	if d := tree.At("Description"); d != nil {
		text := tree.Str("Description")
		w.Describe = &text
	}
	return nil
}

// recomposeVApp adds and removes VMs and networks and changes name and description.
func recomposeVApp(r *request, v *store.VApp, tree *xmltree.Node) (*response, error) {
	vdc, err := vdcByID(r.cloud.store, v.VDCID)
	if err != nil {
		return nil, err
	}
	w := store.Work{Op: opRecompose, VApp: v.ID, PowerOn: tree.Attr("powerOn") == "true"}
	if err := readVAppName(r.cloud.store, v, tree, &w); err != nil {
		return nil, err
	}
	if w.Networks, err = readNetworks(r.cloud.store, r.cloud.ids, vdc, tree.At("InstantiationParams", "NetworkConfigSection"),
		v.Networks); err != nil {
		return nil, err
	}
	// The NICs of new VMs may be on networks that the same request brings.
	planned := *v
	planned.Networks = append(append([]store.VAppNetwork{}, v.Networks...), w.Networks...)
	vms, err := newVMs(r, vdc, &planned, tree)
	if err != nil {
		return nil, err
	}
	if w.Remove, err = readDeletes(r, v, tree); err != nil {
		return nil, err
	}
	w.VMs = addVMs(r.cloud.store, vms)
	locks := append(append([]string{v.ID}, w.VMs...), w.Remove...)
	if len(w.VMs) == 0 {
		w.Op = opUpdateVApp
	}
	return r.start(w, v.Entity(), locks), nil
}

func readDeletes(r *request, v *store.VApp, tree *xmltree.Node) ([]string, error) {
	var out []string
	for _, d := range tree.All("DeleteItem") {
		vm, err := vmByID(r, store.Bare(d.Attr("href")))
		if err != nil {
			return nil, err
		}
		if vm.VAppID != v.ID {
			return nil, store.Forbidden("VAPP_VM_DELETE", vm.ID)
		}
		if err := deletable(r.cloud.store, &r.cloud.assume, vm); err != nil {
			return nil, err
		}
		out = append(out, vm.ID)
	}
	return out, nil
}

func deleteVApp(r *request, v *store.VApp) (*response, error) {
	if r.cloud.store.Running(v) {
		return nil, store.BadRequest("The requested operation could not be executed on vApp %q. Stop the vApp and "+
			"try again.", v.Name)
	}
	for _, vm := range r.cloud.store.VMsOf(v.ID) {
		if err := noDisks(r.cloud.store, &r.cloud.assume, vm); err != nil {
			return nil, err
		}
	}
	return r.start(store.Work{Op: opDeleteVApp, VApp: v.ID}, v.Entity(), vappsOf(r.cloud).locks(v)), nil
}

func getVAppNetworks(r *request, v *store.VApp) (*response, error) {
	return xmlOK(networkConfigSection(r.site, r.cloud.store, v, true)), nil
}

// putVAppNetworks replaces the networks of a vApp.
func putVAppNetworks(r *request, v *store.VApp, tree *xmltree.Node) (*response, error) {
	vdc, err := vdcByID(r.cloud.store, v.VDCID)
	if err != nil {
		return nil, err
	}
	networks, err := readNetworks(r.cloud.store, r.cloud.ids, vdc, tree, v.Networks)
	if err != nil {
		return nil, err
	}
	after := *v
	after.Networks = networks
	if err := removableNetworks(r.cloud.store, &r.cloud.assume, v, &after); err != nil {
		return nil, err
	}
	w := store.Work{Op: opNetworks, VApp: v.ID, Networks: networks, Replace: true}
	return r.start(w, v.Entity(), []string{v.ID}), nil
}

// removableNetworks refuses to remove a network from a vApp that runs or, if that is assumed, that NICs use.
func removableNetworks(st *store.Store, assume *Assumptions, v, after *store.VApp) error {
	for _, n := range v.Networks {
		if after.Network(n.Name) != nil {
			continue
		}
		if vm := st.UserOf(v, n.Name); vm != nil && assume.UsedNetworkStays {
			return store.BadRequest("The network %q cannot be removed: it is in use by VM %q.", n.Name, vm.Name)
		}
		if st.Running(v) && assume.RunningBlocksNetworkRemoval {
			return store.Refuse(http.StatusConflict, "CONFLICT",
				"The requested operation could not be executed on vApp %q. Stop the vApp and try again.", v.Name)
		}
	}
	return nil
}

func getLease(r *request, v *store.VApp) (*response, error) {
	return xmlOK(leaseSection(r.site, v, true)), nil
}

func putLease(r *request, v *store.VApp) (*response, error) {
	if err := r.cloud.tasks.checkIdle(v.ID); err != nil {
		return nil, err
	}
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	lease := readLease(tree, v.Lease, r.cloud.store.Org(v.OrgID))
	return r.start(store.Work{Op: opLease, VApp: v.ID, Lease: &lease}, v.Entity(), []string{v.ID}), nil
}

func getVAppOwner(r *request, v *store.VApp) (*response, error) {
	n := xmltree.New("Owner", wire.Namespaces(), xmltree.A("href", r.site.Href("vapp", v.ID)+"/owner"),
		xmltree.A("type", wire.Mime("owner")))
	n.Add(ownerNode(r.site, v.OwnerID, userName(r.cloud.store, v)).Children)
	return xmlOK(n), nil
}

// putVAppOwner gives a vApp to another user of the organization.
func putVAppOwner(r *request, v *store.VApp, tree *xmltree.Node) (*response, error) {
	org, u, err := userByID(r.session, r.cloud.store, store.Bare(tree.At("User").Attr("href")))
	if err != nil {
		return nil, err
	}
	if org.ID != v.OrgID {
		return nil, store.BadRequest("The user %s is not of the organization of the vApp.", u.Name)
	}
	v.OwnerID = u.ID
	return noContent(), nil
}

// powerVApp does to all VMs of a vApp what powerVM does to one.
func powerVApp(r *request, action string) (*response, error) {
	v, err := idleVApp(r)
	if err != nil {
		return nil, err
	}
	w := powerWork(action)
	w.VApp = v.ID
	for _, vm := range r.cloud.store.VMsOf(v.ID) {
		if vm.Status != w.Power && vm.Status != store.Unresolved {
			w.VMs = append(w.VMs, vm.ID)
		}
	}
	if err := mayStart(r.cloud.store, v.VDCID, w); err != nil {
		return nil, err
	}
	if action != "powerOn" && !r.cloud.store.Deployed(v) {
		return nil, notRunning(v)
	}
	return r.start(w, v.Entity(), vappsOf(r.cloud).locks(v)), nil
}

func notRunning(v *store.VApp) error {
	return store.BadRequest("The requested operation could not be executed since vApp %q is not running.", v.Name)
}

func deployVApp(r *request, v *store.VApp) (*response, error) {
	w, err := deployWork(r)
	if err != nil {
		return nil, err
	}
	w.VApp = v.ID
	w.VMs = vappsOf(r.cloud).vmIDs(v)
	if err := mayStart(r.cloud.store, v.VDCID, w); err != nil {
		return nil, err
	}
	return r.start(w, v.Entity(), vappsOf(r.cloud).locks(v)), nil
}

func undeployVApp(r *request, v *store.VApp) (*response, error) {
	w, err := undeployWork(r)
	if err != nil {
		return nil, err
	}
	if !r.cloud.store.Deployed(v) {
		return nil, notRunning(v)
	}
	w.VApp = v.ID
	w.VMs = vappsOf(r.cloud).vmIDs(v)
	return r.start(w, v.Entity(), vappsOf(r.cloud).locks(v)), nil
}
