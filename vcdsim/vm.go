// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func vmRoutes(add addRoute) {
	const vm = "/api/vApp/vm-{vm}"
	add("GET", vm, with(ownVM, getVM), latencyVM)
	add("PUT", vm, reconfigureVM, latencyWrite)
	add("DELETE", vm, with(idleVM, deleteVMRequest), latencyWrite)
	add("POST", vm+"/action/reconfigureVm", reconfigureVM, latencyWrite)
	add("POST", vm+"/action/deploy", with(idleVM, deployVM), latencyWrite)
	add("POST", vm+"/action/undeploy", with(idleVM, undeployVM), latencyWrite)
	for _, action := range []string{"powerOn", "powerOff", "shutdown", "reboot", "reset", "suspend"} {
		add("POST", vm+"/power/action/"+action, func(r *request) (*response, error) { return powerVM(r, action) },
			latencyWrite)
	}
	for part, show := range map[string]func(*request, *store.VM) *response{
		"/networkConnectionSection": func(r *request,
			v *store.VM,
		) *response {
			return xmlOK(connectionSection(r.site, v, true))
		},
		"/guestCustomizationSection": func(r *request,
			v *store.VM,
		) *response {
			return xmlOK(customizationSection(r.site, v, true))
		},
		"/virtualHardwareSection": func(r *request,
			v *store.VM,
		) *response {
			return xmlOK(hardwareSection(r, v, true))
		},
		"/virtualHardwareSection/disks": func(r *request,
			v *store.VM,
		) *response {
			return itemsList(r.site, v, "disks", diskItems(r.site, r.cloud.store, "Item", v))
		},
		"/virtualHardwareSection/networkCards": func(r *request, v *store.VM) *response {
			return itemsList(r.site, v, "networkCards", nicItems(v))
		},
		"/virtualHardwareSection/cpu": func(r *request,
			v *store.VM,
		) *response {
			return xmlOK(rootItem(cpuItem(r.site, "Item", v)))
		},
		"/virtualHardwareSection/memory": func(r *request,
			v *store.VM,
		) *response {
			return xmlOK(rootItem(memoryItem(r.site, "Item", v)))
		},
		"/productSections":          vmProducts,
		"/guestcustomizationstatus": func(_ *request, v *store.VM) *response { return xmlOK(customizationStatus(v)) },
	} {
		add("GET", vm+part, func(r *request) (*response, error) { return showVM(r, show) }, latencyLegacy)
	}
	add("PUT", vm+"/networkConnectionSection", putNICs, latencyWrite)
	add("PUT", vm+"/guestCustomizationSection", putCustomization, latencyWrite)
	add("PUT", vm+"/virtualHardwareSection", putHardware, latencyWrite)
	add("PUT", vm+"/virtualHardwareSection/cpu", putItem, latencyWrite)
	add("PUT", vm+"/virtualHardwareSection/memory", putItem, latencyWrite)
	add("PUT", vm+"/productSections", putVMProducts, latencyWrite)
	add("POST", vm+"/disk/action/attach", with2(diskParam, attachDisk), latencyWrite)
	add("POST", vm+"/disk/action/detach", with2(diskParam, detachDisk), latencyWrite)
}

// vmByID finds a VM that the caller may use as the request wants to.
func vmByID(r *request, id string) (*store.VM, error) {
	if err := checkVApp(r, r.cloud.store.Home(id), "VAPP_VM_VIEW", id); err != nil {
		return nil, err
	}
	return r.cloud.store.VMs[id], nil
}

func ownVM(r *request) (*store.VM, error) { return vmByID(r, r.vars["vm"]) }

// idleVM finds the VM in the path for a write.
func idleVM(r *request) (*store.VM, error) {
	vm, err := ownVM(r)
	if err != nil {
		return nil, err
	}
	return vm, vmsOf(r.cloud).checkIdle(vm)
}

// startVM begins a task on a VM.
func startVM(r *request, vm *store.VM, w store.Work) (*response, error) {
	w.VM = vm.ID
	w.VApp = vm.VAppID
	if err := mayStart(r.cloud.store, r.cloud.store.VApps[vm.VAppID].VDCID, w); err != nil {
		return nil, err
	}
	return r.start(w, vm.Entity(), vmsOf(r.cloud).locks(vm)), nil
}

func getVM(r *request, vm *store.VM) (*response, error) {
	return xmlOK(vmNode(r, vm, true)), nil
}

func showVM(r *request, show func(*request, *store.VM) *response) (*response, error) {
	vm, err := ownVM(r)
	if err != nil {
		return nil, err
	}
	return show(r, vm), nil
}

// rootItem makes a document of a hardware item.
func rootItem(n *xmltree.Node) *xmltree.Node {
	n.Attrs = append(append(wire.Namespaces(), xmltree.A("xmlns:vcloud", wire.Namespaces()[0].Value)), n.Attrs...)
	return n
}

func nicItems(vm *store.VM) []*xmltree.Node {
	var out []*xmltree.Node
	for _, nic := range vm.NICs {
		out = append(out, nicItem("Item", vm, nic))
	}
	return out
}

func customizationStatus(vm *store.VM) *xmltree.Node {
	return xmltree.New("GuestCustomizationStatusSection", wire.Namespaces(), xmltree.A("ovf:required", false),
		xmltree.T("ovf:Info", "Specifies the status of guest customization"),
		xmltree.T("GuestCustStatus", gcStatus(vm)))
}

// noDisks refuses what would take an attached independent disk along.
func noDisks(st *store.Store, assume *Assumptions, vm *store.VM) error {
	if !assume.AttachedDiskBlocksDelete {
		return nil
	}
	for _, d := range vm.Disks {
		if x := st.Disks[d.DiskID]; x != nil {
			return store.BadRequest("The VM %q cannot be deleted: the independent disk %q is attached to it. Detach the "+
				"disk and try again.", vm.Name, x.Name)
		}
	}
	return nil
}

func deletable(st *store.Store, assume *Assumptions, vm *store.VM) error {
	switch {
	case vm.Status == store.PoweredOn:
		return store.BadRequest("The requested operation could not be executed since VM %q is powered on. Stop the VM and "+
			"try again.", vm.Name)
	case vm.Deployed && assume.DeployedBlocksDelete:
		return store.BadRequest("The requested operation could not be executed since VM %q is deployed. Stop the VM and "+
			"try again.", vm.Name)
	}
	return noDisks(st, assume, vm)
}

func deleteVMRequest(r *request, vm *store.VM) (*response, error) {
	if err := deletable(r.cloud.store, &r.cloud.assume, vm); err != nil {
		return nil, err
	}
	return startVM(r, vm, store.Work{Op: opDeleteVM})
}

// powerWork is what a power action does.
func powerWork(action string) store.Work {
	switch action {
	case "powerOn":
		return store.Work{Op: opDeploy, Power: store.PoweredOn}
	case "powerOff":
		return store.Work{Op: opPowerOff, Power: store.PoweredOff}
	case "shutdown":
		return store.Work{Op: opShutdown, Power: store.PoweredOff, Gently: true}
	case "suspend":
		return store.Work{Op: opSuspend, Power: store.Suspended}
	case "reboot":
		return store.Work{Op: opReboot, Power: store.PoweredOn, Gently: true}
	default:
		return store.Work{Op: opReset, Power: store.PoweredOn}
	}
}

// allowedAction refuses a power action that the VM's state rules out.
func allowedAction(vm *store.VM, action string) error {
	on := vm.Status == store.PoweredOn
	switch {
	case vm.Status == store.Unresolved || vm.Status == store.FailedCreation:
		return store.BadRequest("The requested operation could not be executed since VM %q is not resolved.", vm.Name)
	case action == "powerOn" && on:
		return store.BadRequest("The requested operation could not be executed since VM %q is not powered off.", vm.Name)
	case action != "powerOn" && !on:
		return store.BadRequest("The requested operation could not be executed since VM %q is not powered on.", vm.Name)
	case (action == "shutdown" || action == "reboot") && !vm.Boot.Up:
		return store.BadRequest("Cannot complete operation because VMware Tools is not running in VM %q.", vm.Name)
	}
	return nil
}

func powerVM(r *request, action string) (*response, error) {
	vm, err := idleVM(r)
	if err != nil {
		return nil, err
	}
	if err := allowedAction(vm, action); err != nil {
		return nil, err
	}
	w := powerWork(action)
	w.VMs = []string{vm.ID}
	return startVM(r, vm, w)
}

// deployWork reads DeployVAppParams.
func deployWork(r *request) (store.Work, error) {
	w := store.Work{Op: opDeploy}
	if len(r.body) == 0 {
		w.Power = store.PoweredOn
		return w, nil
	}
	tree, err := r.tree()
	if err != nil {
		return store.Work{}, err
	}
	if tree.Attr("powerOn") != "false" {
		w.Power = store.PoweredOn
	}
	return w, nil
}

// undeployWork reads UndeployVAppParams.
func undeployWork(r *request) (store.Work, error) {
	action := "default"
	if len(r.body) > 0 {
		tree, err := r.tree()
		if err != nil {
			return store.Work{}, err
		}
		if a := tree.Str("UndeployPowerAction"); a != "" {
			action = a
		}
	}
	if !slices.Contains([]string{"powerOff", "suspend", "shutdown", "force", "default"}, action) {
		return store.Work{}, store.BadRequest("The undeploy power action %q is invalid.", action)
	}
	w := store.Work{Op: opUndeploy, Power: store.PoweredOff, Gently: action == "shutdown"}
	if action == "suspend" {
		w.Power = store.Suspended
	}
	return w, nil
}

func deployVM(r *request, vm *store.VM) (*response, error) {
	w, err := deployWork(r)
	if err != nil {
		return nil, err
	}
	w.VMs = []string{vm.ID}
	return startVM(r, vm, w)
}

func undeployVM(r *request, vm *store.VM) (*response, error) {
	w, err := undeployWork(r)
	if err != nil {
		return nil, err
	}
	if !vm.Deployed {
		return nil, store.BadRequest("The requested operation could not be executed since VM %q is not running.", vm.Name)
	}
	w.VMs = []string{vm.ID}
	return startVM(r, vm, w)
}
