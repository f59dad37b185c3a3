// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// CopyVM returns a copy of a VM for a vApp, with a new ID and new network addresses. The copy has no independent disks,
// media, snapshot or metadata.
func CopyVM(s *cloud.Cloud, source *store.VM, v *store.VApp) *store.VM {
	c := source.Clone()
	c.ID = s.IDs.Next("vm")
	c.VAppID = v.ID
	c.Status = store.Unresolved
	c.Deployed = false
	c.Created = s.Clock.Now()
	c.Boot = store.Boot{}
	c.PoweredOn = false
	c.MediaID = ""
	c.Snapshot = nil
	c.Metadata = map[string]store.Metadata{}
	c.Disks = slices.DeleteFunc(c.Disks, func(d store.VMDisk) bool { return d.DiskID != "" })
	for i := range c.NICs {
		n := &c.NICs[i]
		n.MAC = s.IDs.MAC()
		n.Lease = ""
		if n.Mode != store.ModeManual {
			n.Address = ""
		}
	}
	c.Disconnect(v)
	_, vdc := s.Store.VDC(v.VDCID)
	c.LinkedClone = !vdc.FullClones
	if home := s.Store.VApps[source.VAppID]; home.VDCID != v.VDCID {
		moveDisks(s.Store, &c, vdc.DefaultProfile(), &store.VMChange{})
		c.StorageProfileID = vdc.DefaultProfile()
	}
	return &c
}

// newVMFromVM returns the VM of an item whose source is another VM.
func newVMFromVM(r *api.Request, vdc *store.VDC, v *store.VApp, source *store.VM, item *xmltree.Node) (*store.VM, error) {
	if movesSource(item) {
		return nil, store.BadRequest("The VM %q can be moved only to an existing vApp.", source.Name)
	}
	if err := machines.VMsOf(r.Cloud).CheckIdle(source); err != nil {
		return nil, err
	}
	vm := CopyVM(r.Cloud, source, v)
	vm.Customization.ComputerName = ovf.ComputerName(api.OrElse(item.Str("VmGeneralParams", "Name"), source.Name))
	if err := readSourcedItem(r, vdc, vm, item); err != nil {
		return nil, err
	}
	params := item.At("InstantiationParams")
	if section := params.At("NetworkConnectionSection"); section != nil {
		if err := readNICs(r.Cloud, v, vm, section); err != nil {
			return nil, err
		}
	}
	return vm, readNewHardware(r, vm, params.At("VirtualHardwareSection"))
}

// readSourcedItem reads the parameters of a VM whose source is a VM, except for its NICs and hardware.
func readSourcedItem(r *api.Request, vdc *store.VDC, vm *store.VM, item *xmltree.Node) error {
	vm.Name = api.OrElse(item.Str("VmGeneralParams", "Name"), vm.Name)
	if err := api.CheckName("VM", vm.Name); err != nil {
		return err
	}
	if general := item.At("VmGeneralParams", "Description"); general != nil {
		vm.Description = item.Str("VmGeneralParams", "Description")
	}
	if ref := item.At("StorageProfile"); ref != nil {
		id, err := readProfile(r.Cloud.Store, vdc, ref)
		if err != nil {
			return err
		}
		moveDisks(r.Cloud.Store, vm, id, &store.VMChange{})
		vm.StorageProfileID = id
	}
	if err := readPolicies(r.Cloud.Store, vdc, vm, item.At("ComputePolicy")); err != nil {
		return err
	}
	return readCustomization(item.At("InstantiationParams", "GuestCustomizationSection"), &vm.Customization)
}
