// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// GetVM returns the document of a VM.
func GetVM(r *api.Request, vm *store.VM) (*api.Response, error) {
	return api.XML(ovf.VMNode(r, vm, true)), nil
}

func showVM(r *api.Request, show func(*api.Request, *store.VM) *api.Response) (*api.Response, error) {
	vm, err := OwnVM(r)
	if err != nil {
		return nil, err
	}
	return show(r, vm), nil
}

// checkNoIndependentDisks refuses to delete a VM with an attached independent disk, if the simulator assumes that VCD
// does so.
func checkNoIndependentDisks(st *store.Store, assume *cloud.Assumptions, vm *store.VM) error {
	if !assume.AttachedDiskBlocksDelete {
		return nil
	}
	for _, d := range vm.Disks {
		if x := st.Disks[d.DiskID]; x != nil {
			return store.BadRequest("The VM %q cannot be deleted: the independent disk %q is attached to it. Detach the disk and try again.", vm.Name, x.Name)
		}
	}
	return nil
}

func checkDeletable(st *store.Store, assume *cloud.Assumptions, vm *store.VM) error {
	switch {
	case vm.Status == store.PoweredOn:
		return store.BadRequest("The requested operation could not be executed since VM %q is powered on. Stop the VM and try again.", vm.Name)
	case vm.Deployed && assume.DeployedBlocksDelete:
		return store.BadRequest("The requested operation could not be executed since VM %q is deployed. Stop the VM and try again.", vm.Name)
	}
	return checkNoIndependentDisks(st, assume, vm)
}

func deleteVMRequest(r *api.Request, vm *store.VM) (*api.Response, error) {
	if err := checkDeletable(r.Cloud.Store, &r.Cloud.Assume, vm); err != nil {
		return nil, err
	}
	return StartVM(r, vm, store.Work{Op: cloud.OpDeleteVM})
}

// powerWork returns the work of a power action.
func powerWork(action string) store.Work {
	switch action {
	case "powerOn":
		return store.Work{Op: cloud.OpDeploy, Power: store.PoweredOn}
	case "powerOff":
		return store.Work{Op: cloud.OpPowerOff, Power: store.PoweredOff}
	case "shutdown":
		return store.Work{Op: cloud.OpShutdown, Power: store.PoweredOff, Gently: true}
	case "suspend":
		return store.Work{Op: cloud.OpSuspend, Power: store.Suspended}
	case "reboot":
		return store.Work{Op: cloud.OpReboot, Power: store.PoweredOn, Gently: true}
	default:
		return store.Work{Op: cloud.OpReset, Power: store.PoweredOn}
	}
}

// checkPowerAction refuses a power action that the state of the VM does not allow.
func checkPowerAction(vm *store.VM, action string) error {
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

func powerVM(r *api.Request, action string) (*api.Response, error) {
	vm, err := IdleVM(r)
	if err != nil {
		return nil, err
	}
	if err := checkPowerAction(vm, action); err != nil {
		return nil, err
	}
	w := powerWork(action)
	w.VMs = []string{vm.ID}
	return StartVM(r, vm, w)
}

// deployWork reads DeployVAppParams.
func deployWork(r *api.Request) (store.Work, error) {
	w := store.Work{Op: cloud.OpDeploy}
	if len(r.Content) == 0 {
		w.Power = store.PoweredOn
		return w, nil
	}
	tree, err := r.Tree()
	if err != nil {
		return store.Work{}, err
	}
	if tree.Attr("powerOn") != "false" {
		w.Power = store.PoweredOn
	}
	return w, nil
}

// undeployWork reads UndeployVAppParams.
func undeployWork(r *api.Request) (store.Work, error) {
	action := "default"
	if len(r.Content) > 0 {
		tree, err := r.Tree()
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
	w := store.Work{Op: cloud.OpUndeploy, Power: store.PoweredOff, Gently: action == "shutdown"}
	if action == "suspend" {
		w.Power = store.Suspended
	}
	return w, nil
}

func deployVM(r *api.Request, vm *store.VM) (*api.Response, error) {
	w, err := deployWork(r)
	if err != nil {
		return nil, err
	}
	w.VMs = []string{vm.ID}
	return StartVM(r, vm, w)
}

func undeployVM(r *api.Request, vm *store.VM) (*api.Response, error) {
	w, err := undeployWork(r)
	if err != nil {
		return nil, err
	}
	if !vm.Deployed {
		return nil, store.BadRequest("The requested operation could not be executed since VM %q is not running.", vm.Name)
	}
	w.VMs = []string{vm.ID}
	return StartVM(r, vm, w)
}
