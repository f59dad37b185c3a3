// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// newRawVM returns a VM that is not created from a template.
func newRawVM(r *api.Request, vdc *store.VDC, v *store.VApp, item *xmltree.Node) (*store.VM, error) {
	name := item.Attr("name")
	if err := api.CheckName("VM", name); err != nil {
		return nil, err
	}
	spec := item.At("VmSpecSection")
	vm := &store.VM{
		ID:              r.Cloud.IDs.Next("vm"),
		Name:            name,
		Description:     item.Str("Description"),
		VAppID:          v.ID,
		Status:          store.Unresolved,
		Created:         r.Cloud.Clock.Now(),
		OS:              api.OrElse(spec.Str("OsType"), "otherLinux64Guest"),
		HardwareVersion: api.OrElse(spec.Str("HardwareVersion"), vdcs.DefaultHardware),
		CPUs:            1,
		CoresPerSocket:  1,
		MemoryMiB:       512,
		ExtraConfig:     map[string]string{},
		Metadata:        map[string]store.Metadata{},
		Properties:      map[string]store.Property{},
		Customization:   store.Customization{ComputerName: ovf.ComputerName(name)},
	}
	if err := choosePolicies(r.Cloud.Store, vdc, vm, item); err != nil {
		return nil, err
	}
	for _, read := range []changeReader{readSpec, readBoot} {
		if err := read(r, vm, item, &store.VMChange{}); err != nil {
			return nil, err
		}
	}
	if err := readCustomization(item.At("GuestCustomizationSection"), &vm.Customization); err != nil {
		return nil, err
	}
	if image := item.At("BootImage"); image != nil {
		_, m, err := MediaByID(r, image.Attr("href"))
		if err != nil {
			return nil, err
		}
		vm.MediaID = m.ID
	}
	if section := item.At("NetworkConnectionSection"); section != nil {
		return vm, readNICs(r.Cloud, v, vm, section)
	}
	return vm, nil
}
