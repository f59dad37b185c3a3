package vcdsim

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func vappRoutes(add addRoute) {
	add("POST", "/api/vdc/{id}/action/composeVApp", (*request).composeVApp, latencyWrite)
	add("POST", "/api/vdc/{id}/action/instantiateVAppTemplate", (*request).instantiate, latencyWrite)
	const vapp = "/api/vApp/vapp-{vapp}"
	add("GET", vapp, (*request).getVApp, latencyVApp)
	add("PUT", vapp, (*request).putVApp, latencyWrite)
	add("DELETE", vapp, (*request).deleteVApp, latencyWrite)
	add("POST", vapp+"/action/recomposeVApp", (*request).recompose, latencyWrite)
	add("GET", vapp+"/networkConfigSection", (*request).getNetworks, latencyLegacy)
	add("PUT", vapp+"/networkConfigSection", (*request).putNetworks, latencyWrite)
	add("GET", vapp+"/leaseSettingsSection", (*request).getLease, latencyLegacy)
	add("PUT", vapp+"/leaseSettingsSection", (*request).putLease, latencyWrite)
	add("GET", vapp+"/productSections", (*request).getVAppProducts, latencyLegacy)
	add("PUT", vapp+"/productSections", (*request).putVAppProducts, latencyWrite)
	add("GET", vapp+"/owner", (*request).getVAppOwner, latencyLegacy)
	add("POST", vapp+"/action/deploy", (*request).deployVApp, latencyWrite)
	add("POST", vapp+"/action/undeploy", (*request).undeployVApp, latencyWrite)
	for _, action := range []string{"powerOn", "powerOff", "shutdown", "reboot", "reset", "suspend"} {
		add("POST", vapp+"/power/action/"+action, func(r *request) (*response, error) { return r.powerVApp(action) }, latencyWrite)
	}
}

// vappByID finds a vApp the caller may see.
func (r *request) vappByID(id string) (*VApp, error) {
	v := r.sim.store.vapps[id]
	if v == nil || !r.sees(v.OrgID) {
		return nil, forbidden("VAPP_VIEW", id)
	}
	return v, nil
}

func (r *request) ownVApp() (*VApp, error) { return r.vappByID(r.vars["vapp"]) }

// idleVApp finds the vApp in the path for a write.
func (r *request) idleVApp() (*VApp, error) {
	v, err := r.ownVApp()
	if err != nil {
		return nil, err
	}
	return v, r.sim.vappFree(v)
}

// vappToChange finds the vApp in the path for a write, and what it is to become.
func (r *request) vappToChange() (*VApp, *xmltree.Node, error) {
	v, err := r.idleVApp()
	if err != nil {
		return nil, nil, err
	}
	tree, err := r.tree()
	return v, tree, err
}

func (r *request) composeVApp() (*response, error) { return r.create(opCompose) }

func (r *request) instantiate() (*response, error) { return r.create(opInstantiate) }

// create makes a vApp: 201 with the vApp, which has the task in it.
func (r *request) create(op string) (*response, error) {
	org, vdc, err := r.ownVDC()
	if err != nil {
		return nil, err
	}
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	if err := vdc.mayUse(); err != nil {
		return nil, err
	}
	v, err := r.newVApp(org, vdc, tree)
	if err != nil {
		return nil, err
	}
	items := tree
	if op == opInstantiate {
		items = xmltree.New("", xmltree.New("SourcedItem", tree.Children))
	}
	vms, err := r.newVMs(vdc, v, items)
	if err != nil {
		return nil, err
	}
	r.sim.store.vapps[v.ID] = v
	ids := r.addVMs(vms)
	if op == opCompose && len(ids) > 0 {
		op = opComposeVMs
	}
	w := Work{Op: op, VApp: v.ID, VMs: ids, PowerOn: tree.Attr("powerOn") == "true"}
	r.sim.startTask(r, w, v.entity(), r.sim.vappLocks(v))
	return r.createdVApp(v), nil
}

func (r *request) createdVApp(v *VApp) *response {
	return &response{status: http.StatusCreated, xml: r.vappNode(v), header: map[string]string{"Location": r.href("vapp", v.ID)}}
}

func (r *request) addVMs(vms []*VM) []string {
	var out []string
	for _, vm := range vms {
		r.sim.store.addVM(vm)
		out = append(out, vm.ID)
	}
	return out
}

func (r *request) getVApp() (*response, error) {
	v, err := r.ownVApp()
	if err != nil {
		return nil, err
	}
	return xmlOK(r.vappNode(v)), nil
}

// putVApp changes name and description.
func (r *request) putVApp() (*response, error) {
	v, tree, err := r.vappToChange()
	if err != nil {
		return nil, err
	}
	w := Work{Op: opUpdateVApp, VApp: v.ID}
	if err := r.readName(v, tree, &w); err != nil {
		return nil, err
	}
	return r.accepted(r.sim.startTask(r, w, v.entity(), []string{v.ID})), nil
}

// readName reads a new name and description.
func (r *request) readName(v *VApp, tree *xmltree.Node, w *Work) error {
	if name := tree.Attr("name"); name != "" && name != v.Name {
		for _, other := range r.sim.store.vapps {
			if other.VDCID == v.VDCID && other.Name == name {
				return duplicateName(name)
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

// recompose adds and removes VMs and networks and changes name and description.
func (r *request) recompose() (*response, error) {
	v, tree, err := r.vappToChange()
	if err != nil {
		return nil, err
	}
	vdc, err := r.vdcOf(v.VDCID)
	if err != nil {
		return nil, err
	}
	w := Work{Op: opRecompose, VApp: v.ID, PowerOn: tree.Attr("powerOn") == "true"}
	if err := r.readName(v, tree, &w); err != nil {
		return nil, err
	}
	if w.Networks, err = r.readNetworks(vdc, tree.At("InstantiationParams", "NetworkConfigSection"), v.Networks); err != nil {
		return nil, err
	}
	// The NICs of new VMs may be on networks that the same request brings.
	planned := *v
	planned.Networks = append(append([]VAppNetwork{}, v.Networks...), w.Networks...)
	vms, err := r.newVMs(vdc, &planned, tree)
	if err != nil {
		return nil, err
	}
	if w.Remove, err = r.readDeletes(v, tree); err != nil {
		return nil, err
	}
	w.VMs = r.addVMs(vms)
	locks := append(append([]string{v.ID}, w.VMs...), w.Remove...)
	if len(w.VMs) == 0 {
		w.Op = opUpdateVApp
	}
	return r.accepted(r.sim.startTask(r, w, v.entity(), locks)), nil
}

func (r *request) readDeletes(v *VApp, tree *xmltree.Node) ([]string, error) {
	var out []string
	for _, d := range tree.All("DeleteItem") {
		vm, err := r.vmByID(bare(d.Attr("href")))
		if err != nil {
			return nil, err
		}
		if vm.VAppID != v.ID {
			return nil, forbidden("VAPP_VM_DELETE", vm.ID)
		}
		if err := r.deletable(vm); err != nil {
			return nil, err
		}
		out = append(out, vm.ID)
	}
	return out, nil
}

func (r *request) deleteVApp() (*response, error) {
	v, err := r.idleVApp()
	if err != nil {
		return nil, err
	}
	if r.sim.store.running(v) {
		return nil, badRequest("The requested operation could not be executed on vApp %q. Stop the vApp and try again.", v.Name)
	}
	for _, vm := range r.sim.store.vmsOf(v.ID) {
		if err := r.noDisks(vm); err != nil {
			return nil, err
		}
	}
	return r.accepted(r.sim.startTask(r, Work{Op: opDeleteVApp, VApp: v.ID}, v.entity(), r.sim.vappLocks(v))), nil
}

func (r *request) getNetworks() (*response, error) {
	v, err := r.ownVApp()
	if err != nil {
		return nil, err
	}
	return xmlOK(r.networkConfigSection(v, true)), nil
}

// putNetworks replaces the networks of a vApp.
func (r *request) putNetworks() (*response, error) {
	v, tree, err := r.vappToChange()
	if err != nil {
		return nil, err
	}
	vdc, err := r.vdcOf(v.VDCID)
	if err != nil {
		return nil, err
	}
	networks, err := r.readNetworks(vdc, tree, v.Networks)
	if err != nil {
		return nil, err
	}
	after := *v
	after.Networks = networks
	if err := r.removable(v, &after); err != nil {
		return nil, err
	}
	w := Work{Op: opNetworks, VApp: v.ID, Networks: networks, Replace: true}
	return r.accepted(r.sim.startTask(r, w, v.entity(), []string{v.ID})), nil
}

// removable refuses to take a network away from a vApp that runs or, if that is assumed, from NICs.
func (r *request) removable(v, after *VApp) error {
	for _, n := range v.Networks {
		if after.network(n.Name) != nil {
			continue
		}
		if vm := r.sim.store.userOf(v, n.Name); vm != nil && r.sim.assume.UsedNetworkStays {
			return badRequest("The network %q cannot be removed: it is in use by VM %q.", n.Name, vm.Name)
		}
		if r.sim.store.running(v) && r.sim.assume.RunningBlocksNetworkRemoval {
			return refuse(http.StatusConflict, "CONFLICT",
				"The requested operation could not be executed on vApp %q. Stop the vApp and try again.", v.Name)
		}
	}
	return nil
}

// userOf is a VM of a vApp with a NIC on a network, nil if there is none.
func (s *store) userOf(v *VApp, network string) *VM {
	for _, vm := range s.vmsOf(v.ID) {
		if slices.ContainsFunc(vm.NICs, func(nic NIC) bool { return nic.Network == network }) {
			return vm
		}
	}
	return nil
}

func (r *request) getLease() (*response, error) {
	v, err := r.ownVApp()
	if err != nil {
		return nil, err
	}
	return xmlOK(r.leaseSection(v, true)), nil
}

func (r *request) putLease() (*response, error) {
	v, err := r.ownVApp()
	if err != nil {
		return nil, err
	}
	if err := r.sim.busyCheck(v.ID); err != nil {
		return nil, err
	}
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	lease := readLease(tree, v.Lease, r.sim.store.org(v.OrgID))
	return r.accepted(r.sim.startTask(r, Work{Op: opLease, VApp: v.ID, Lease: &lease}, v.entity(), []string{v.ID})), nil
}

func (r *request) getVAppOwner() (*response, error) {
	v, err := r.ownVApp()
	if err != nil {
		return nil, err
	}
	n := xmltree.New("Owner", namespaces(), xmltree.A("href", r.href("vapp", v.ID)+"/owner"), xmltree.A("type", mime("owner")))
	n.Add(r.ownerNode(v.OwnerID, r.userName(v)).Children)
	return xmlOK(n), nil
}

// powerVApp does to all VMs of a vApp what powerVM does to one.
func (r *request) powerVApp(action string) (*response, error) {
	v, err := r.idleVApp()
	if err != nil {
		return nil, err
	}
	w := powerWork(action)
	w.VApp = v.ID
	for _, vm := range r.sim.store.vmsOf(v.ID) {
		if vm.Status != w.Power && vm.Status != Unresolved {
			w.VMs = append(w.VMs, vm.ID)
		}
	}
	if err := r.mayStart(v.VDCID, w); err != nil {
		return nil, err
	}
	if action != "powerOn" && !r.sim.store.deployed(v) {
		return nil, badRequest("The requested operation could not be executed since vApp %q is not running.", v.Name)
	}
	return r.accepted(r.sim.startTask(r, w, v.entity(), r.sim.vappLocks(v))), nil
}

func (r *request) deployVApp() (*response, error) {
	v, err := r.idleVApp()
	if err != nil {
		return nil, err
	}
	w, err := r.deployWork()
	if err != nil {
		return nil, err
	}
	w.VApp, w.VMs = v.ID, r.sim.vmIDs(v)
	if err := r.mayStart(v.VDCID, w); err != nil {
		return nil, err
	}
	return r.accepted(r.sim.startTask(r, w, v.entity(), r.sim.vappLocks(v))), nil
}

func (r *request) undeployVApp() (*response, error) {
	v, err := r.idleVApp()
	if err != nil {
		return nil, err
	}
	w, err := r.undeployWork()
	if err != nil {
		return nil, err
	}
	if !r.sim.store.deployed(v) {
		return nil, badRequest("The requested operation could not be executed since vApp %q is not running.", v.Name)
	}
	w.VApp, w.VMs = v.ID, r.sim.vmIDs(v)
	return r.accepted(r.sim.startTask(r, w, v.entity(), r.sim.vappLocks(v))), nil
}
