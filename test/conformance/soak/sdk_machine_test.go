// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"

	"github.com/vmware/go-vcloud-director/v2/govcd"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// createMachine creates a vApp with one VM on the network of the nodes.
func (s *sdk) createMachine(t *object) error {
	t.remove = func() error { return s.removeMachine(t.name) }
	vapp, err := s.vdc.CreateRawVApp(t.name, "")
	if err != nil {
		return err
	}
	network, err := s.vdc.GetOrgVdcNetworkByName("nodes", false)
	if err != nil {
		return err
	}
	if _, err := vapp.AddOrgNetwork(&govcd.VappNetworkSettings{}, network.OrgVDCNetwork, false); err != nil {
		return err
	}
	catalog, err := s.org.GetCatalogByName("kubernetes", false)
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
	if err := waitTask(vapp.AddNewVM("node", *template, connections, true)); err != nil {
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
		{"tag", s.tag(vapp)},
		{"tag the VM of", s.tag(vm)},
		{"describe", func() error { return vapp.UpdateNameDescription(t.name, text(s.rng)) }},
		{"power on or off", func() error { return togglePower(vm) }},
		{"resize", func() error { return s.resize(vm) }},
		{"attach or detach a disk of", s.toggleDisk(vm, t.name+"-data")},
	}
	return nil
}

// resize changes the number of CPUs of a VM if it is off.
func (s *sdk) resize(vm *govcd.VM) error {
	on, err := vm.IsDeployed()
	if err != nil || on {
		return err
	}
	if err := vm.Refresh(); err != nil {
		return err
	}
	return vm.ChangeCPU(1+s.rng.IntN(4), 1)
}

// toggleDisk creates and attaches the named disk, or detaches and deletes it if it exists.
func (s *sdk) toggleDisk(vm *govcd.VM, name string) func() error {
	return func() error {
		found, err := s.vdc.GetDisksByName(name, true)
		if ignoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			return s.removeDisk(vm, &(*found)[0])
		}
		if err := waitTask(s.vdc.CreateDisk(&types.DiskCreateParams{Disk: &types.Disk{Name: name, SizeMb: 512}})); err != nil {
			return err
		}
		if found, err = s.vdc.GetDisksByName(name, true); err != nil {
			return err
		}
		return waitTask(vm.AttachDisk(&types.DiskAttachOrDetachParams{Disk: &types.Reference{HREF: (*found)[0].Disk.HREF}}))
	}
}

// removeDisk deletes a disk. It first detaches it from the VM if needed.
func (s *sdk) removeDisk(vm *govcd.VM, disk *govcd.Disk) error {
	attached, err := disk.AttachedVM()
	if err != nil {
		return err
	}
	if attached != nil {
		err := waitTask(vm.DetachDisk(&types.DiskAttachOrDetachParams{Disk: &types.Reference{HREF: disk.Disk.HREF}}))
		if err != nil {
			return err
		}
		if err := disk.Refresh(); err != nil {
			return err
		}
	}
	return waitTask(disk.Delete())
}

// removeMachine deletes the disk and the vApp of a machine, if they exist.
func (s *sdk) removeMachine(name string) error {
	vapp, err := s.vdc.GetVAppByName(name, true)
	if err != nil {
		return ignoreNotFound(err)
	}
	disks, err := s.vdc.GetDisksByName(name+"-data", true)
	if ignoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		vm, err := vapp.GetVMByName("node", true)
		if err != nil {
			return fmt.Errorf("finding the VM of a disk: %w", err)
		}
		if err := s.removeDisk(vm, &(*disks)[0]); err != nil {
			return err
		}
	}
	if vapp.VApp.Deployed {
		if err := waitTask(vapp.Undeploy()); err != nil {
			return err
		}
	}
	return waitTask(vapp.Delete())
}
