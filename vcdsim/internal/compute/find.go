// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

// OwnVApp returns the vApp in the path.
func OwnVApp(r *api.Request) (*store.VApp, error) { return VAppByID(r, r.Vars["vapp"]) }

// idleVApp returns the vApp in the path, or an error if a task uses the vApp.
func idleVApp(r *api.Request) (*store.VApp, error) {
	v, err := OwnVApp(r)
	if err != nil {
		return nil, err
	}
	return v, machines.VAppsOf(r.Cloud).CheckIdle(v)
}

// VAppByID returns a vApp, or an error unless the caller has the right to make this request for it.
func VAppByID(r *api.Request, id string) (*store.VApp, error) {
	v := r.Cloud.Store.VApps[id]
	if err := access.CheckVApp(r, v, "VAPP_VIEW", id); err != nil {
		return nil, err
	}
	return v, nil
}

// OwnVM returns the VM in the path.
func OwnVM(r *api.Request) (*store.VM, error) { return vmByID(r, r.Vars["vm"]) }

// IdleVM returns the VM in the path, or an error if a task uses the VM.
func IdleVM(r *api.Request) (*store.VM, error) {
	vm, err := OwnVM(r)
	if err != nil {
		return nil, err
	}
	return vm, machines.VMsOf(r.Cloud).CheckIdle(vm)
}

// vmByID returns a VM, or an error unless the caller has the right to make this request for it.
func vmByID(r *api.Request, id string) (*store.VM, error) {
	if err := access.CheckVApp(r, r.Cloud.Store.Home(id), "VAPP_VM_VIEW", id); err != nil {
		return nil, err
	}
	return r.Cloud.Store.VMs[id], nil
}

// StartVM starts a task on a VM. It returns an error if the task would power on a VM in a disabled VDC.
func StartVM(r *api.Request, vm *store.VM, w store.Work) (*api.Response, error) {
	w.VM = vm.ID
	w.VApp = vm.VAppID
	if err := vdcs.MayStart(r.Cloud.Store, r.Cloud.Store.VApps[vm.VAppID].VDCID, w); err != nil {
		return nil, err
	}
	return r.Start(w, vm.Entity(), machines.VMsOf(r.Cloud).Locks(vm)), nil
}

func diskByID(r *api.Request, id string) (*store.Disk, error) {
	d := r.Cloud.Store.Disks[store.Bare(id)]
	if d == nil || !access.ViewerOf(r).SeesDisk(d) {
		// Clients detect a deleted disk by this message.
		return nil, store.Refuse(http.StatusForbidden, store.CodeForbidden,
			"The VCD entity com.vmware.vcloud.entity.disk:%s does not exist.", store.Bare(id))
	}
	return d, nil
}

func idleDisk(r *api.Request, id string) (*store.Disk, error) {
	d, err := diskByID(r, id)
	if err != nil {
		return nil, err
	}
	if !access.ViewerOf(r).HasDisk(d) {
		return nil, store.Forbidden(r.Operation, d.ID)
	}
	return d, r.Cloud.Tasks.CheckIdle(d.ID)
}
