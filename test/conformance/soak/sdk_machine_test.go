// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"

	"github.com/vmware/go-vcloud-director/v2/govcd"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// createMachine creates a vApp on the network of nodes with one VM.
func (s *sdk) createMachine(t *thing) error {
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
		{"tag", s.tag(vapp)},
		{"tag the VM of", s.tag(vm)},
		{"describe", func() error { return vapp.UpdateNameDescription(t.name, text(s.rng)) }},
		{"turn on or off", func() error { return toggle(vm) }},
		{"resize", func() error { return s.resize(vm) }},
		{"attach or detach a disk of", s.exchangeDisk(vm, t.name+"-data")},
	}
	return nil
}

// resize changes the processors of a VM that is off.
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

// exchangeDisk attaches a disk that belongs to the machine, or detaches and deletes it.
func (s *sdk) exchangeDisk(vm *govcd.VM, name string) func() error {
	return func() error {
		found, err := s.vdc.GetDisksByName(name, true)
		if gone(err) != nil {
			return err
		}
		if err == nil {
			return s.removeDisk(vm, &(*found)[0])
		}
		if err := waited(s.vdc.CreateDisk(&types.DiskCreateParams{Disk: &types.Disk{Name: name, SizeMb: 512}})); err != nil {
			return err
		}
		if found, err = s.vdc.GetDisksByName(name, true); err != nil {
			return err
		}
		return waited(vm.AttachDisk(&types.DiskAttachOrDetachParams{Disk: &types.Reference{HREF: (*found)[0].Disk.HREF}}))
	}
}

// removeDisk deletes a disk that may be attached to a VM.
func (s *sdk) removeDisk(vm *govcd.VM, disk *govcd.Disk) error {
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

// removeMachine deletes the existing parts of a machine: its disk and its vApp, which must be off.
func (s *sdk) removeMachine(name string) error {
	vapp, err := s.vdc.GetVAppByName(name, true)
	if err != nil {
		return gone(err)
	}
	disks, err := s.vdc.GetDisksByName(name+"-data", true)
	if gone(err) != nil {
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
		if err := waited(vapp.Undeploy()); err != nil {
			return err
		}
	}
	return waited(vapp.Delete())
}
