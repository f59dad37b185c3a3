// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"

	"github.com/vmware/go-vcloud-director/v2/govcd"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// createMachine makes a vApp on the network of nodes with one VM.
func createMachine(w *worker, t *thing) error {
	t.remove = func() error { return w.removeMachine(t.name) }
	vapp, err := w.vdc.CreateRawVApp(t.name, "")
	if err != nil {
		return err
	}
	network, err := w.vdc.GetOrgVdcNetworkByName("nodes", false)
	if err != nil {
		return err
	}
	if _, err := vapp.AddOrgNetwork(&govcd.VappNetworkSettings{}, network.OrgVDCNetwork, false); err != nil {
		return err
	}
	catalog, err := w.org.GetCatalogByName("kubernetes", false)
	if err != nil {
		return err
	}
	template, err := catalog.GetVAppTemplateByName("ubuntu-2404-kube-v1.36.3")
	if err != nil {
		return err
	}
	connections := &types.NetworkConnectionSection{NetworkConnection: []*types.NetworkConnection{{
		Network:                 "nodes",
		IsConnected:             true,
		IPAddressAllocationMode: types.IPAllocationModePool,
	}}}
	if err := waited(vapp.AddNewVM("node", *template, connections, true)); err != nil {
		return err
	}
	if err := vapp.Refresh(); err != nil {
		return err
	}
	vm, err := vapp.GetVMByName("node", true)
	if err != nil {
		return err
	}
	t.changes = []change{
		{"tag", w.tag(vapp)},
		{"tag the VM of", w.tag(vm)},
		{"describe", func() error { return vapp.UpdateNameDescription(t.name, w.text()) }},
		{"turn on or off", func() error { return w.toggle(vm) }},
		{"resize", func() error { return w.resize(vm) }},
		{"attach or detach a disk of", w.exchangeDisk(vm, t.name+"-data")},
	}
	return nil
}

// toggle powers a VM on or off.
func (w *worker) toggle(vm *govcd.VM) error {
	on, err := vm.IsDeployed()
	if err != nil {
		return err
	}
	if on {
		return waited(vm.Undeploy())
	}
	return waited(vm.PowerOn())
}

// resize changes the processors of a VM that is off.
func (w *worker) resize(vm *govcd.VM) error {
	on, err := vm.IsDeployed()
	if err != nil || on {
		return err
	}
	if err := vm.Refresh(); err != nil {
		return err
	}
	return vm.ChangeCPU(1+w.rng.IntN(4), 1)
}

// exchangeDisk attaches a disk of the machine's own, or detaches and deletes it.
func (w *worker) exchangeDisk(vm *govcd.VM, name string) func() error {
	return func() error {
		found, err := w.vdc.GetDisksByName(name, true)
		if gone(err) != nil {
			return err
		}
		if err == nil {
			return w.removeDisk(vm, &(*found)[0])
		}
		if err := waited(w.vdc.CreateDisk(&types.DiskCreateParams{Disk: &types.Disk{Name: name, SizeMb: 512}})); err != nil {
			return err
		}
		if found, err = w.vdc.GetDisksByName(name, true); err != nil {
			return err
		}
		return waited(vm.AttachDisk(&types.DiskAttachOrDetachParams{Disk: &types.Reference{HREF: (*found)[0].Disk.HREF}}))
	}
}

// removeDisk deletes a disk that may be attached to a VM.
func (w *worker) removeDisk(vm *govcd.VM, disk *govcd.Disk) error {
	attached, err := disk.AttachedVM()
	if err != nil {
		return err
	}
	if attached != nil {
		err := waited(vm.DetachDisk(&types.DiskAttachOrDetachParams{Disk: &types.Reference{HREF: disk.Disk.HREF}}))
		if err != nil {
			return err
		}
		if err := disk.Refresh(); err != nil {
			return err
		}
	}
	return waited(disk.Delete())
}

// removeMachine deletes what there is of a machine: its disk, and its vApp, which must not be on.
func (w *worker) removeMachine(name string) error {
	vapp, err := w.vdc.GetVAppByName(name, true)
	if err != nil {
		return gone(err)
	}
	disks, err := w.vdc.GetDisksByName(name+"-data", true)
	if gone(err) != nil {
		return err
	}
	if err == nil {
		vm, err := vapp.GetVMByName("node", true)
		if err != nil {
			return fmt.Errorf("finding the VM of a disk: %w", err)
		}
		if err := w.removeDisk(vm, &(*disks)[0]); err != nil {
			return err
		}
	}
	if vapp.VApp.Deployed {
		if err := waited(vapp.Undeploy()); err != nil {
			return err
		}
	}
	return waited(vapp.Delete())
}
