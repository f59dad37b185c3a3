// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func vmSettingRoutes(add api.AddRoute) {
	const vm = "/api/vApp/vm-{vm}"
	add("GET", vm+"/vmCapabilities", func(r *api.Request) (*api.Response, error) {
		return showVM(r, func(r *api.Request, v *store.VM) *api.Response {
			return api.XML(ovf.CapabilitiesSection(r.Site, v, true))
		})
	}, cloud.LatencyLegacy)
	add("PUT", vm+"/vmCapabilities", putCapabilities, cloud.LatencyWrite)
	for action, enabled := range map[string]bool{"enableNestedHypervisor": true, "disableNestedHypervisor": false} {
		add("POST", vm+"/action/"+action, func(r *api.Request) (*api.Response, error) {
			return changeVMSetting(r, "hardware virtualization", func(v *store.VM) { v.NestedHypervisor = enabled })
		}, cloud.LatencyWrite)
	}
	add("POST", vm+"/action/upgradeHardwareVersion", func(r *api.Request) (*api.Response, error) {
		return changeVMSetting(r, "hardware version", func(v *store.VM) { v.HardwareVersion = ovf.Newest(v.HardwareVersion) })
	}, cloud.LatencyWrite)
}

// changeVMSetting changes a hardware setting of a VM, which must be powered off.
func changeVMSetting(r *api.Request, setting string, edit func(*store.VM)) (*api.Response, error) {
	vm, err := IdleVM(r)
	if err != nil {
		return nil, err
	}
	if vm.Status != store.PoweredOff {
		return nil, store.BadRequest("The %s of VM %q can be changed only while it is powered off.", setting, vm.Name)
	}
	c := &store.VMChange{VM: vm.Clone(), Settings: true}
	edit(&c.VM)
	return StartVM(r, vm, store.Work{Op: cloud.OpUpdateVM, Change: c})
}

func putCapabilities(r *api.Request) (*api.Response, error) {
	return changeVM(r, func(r *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
		return readCapabilities(r, vm, xmltree.New("Vm", tree), c)
	})
}

// readCapabilities reads VmCapabilities. A capability that the element omits is disabled.
func readCapabilities(_ *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
	n := tree.At("VmCapabilities")
	if n == nil {
		return nil
	}
	c.Settings = true
	vm.MemoryHotAdd = n.Bool("MemoryHotAddEnabled")
	vm.CPUHotAdd = n.Bool("CpuHotAddEnabled")
	return nil
}

// readBoot reads BootOptions. Options that it omits keep their values.
func readBoot(_ *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
	n := tree.At("BootOptions")
	if n == nil {
		return nil
	}
	c.Settings = true
	o := &vm.BootOptions
	for name, into := range map[string]*int64{"BootDelay": &o.DelayMS, "BootRetryDelay": &o.RetryDelayMS} {
		if v, ok := n.Int(name); ok {
			*into = v
		}
	}
	for name, into := range map[string]*bool{
		"EnterBIOSSetup":       &o.EnterBIOS,
		"BootRetryEnabled":     &o.Retry,
		"EfiSecureBootEnabled": &o.SecureBoot,
	} {
		if n.At(name) != nil {
			*into = n.Bool(name)
		}
	}
	o.NetworkProtocol = api.OrElse(n.Str("NetworkBootProtocol"), o.NetworkProtocol)
	if o.DelayMS < 0 || o.RetryDelayMS < 0 {
		return store.BadRequest("The boot options of VM %q have a negative delay.", vm.Name)
	}
	return nil
}

// readMachine reads firmware, time synchronization, operating system and hardware version from a VmSpecSection.
func readMachine(vm *store.VM, spec *xmltree.Node, c *store.VMChange) error {
	if f := spec.Str("Firmware"); f != "" && f != api.OrElse(vm.Firmware, ovf.FirmwareBIOS) {
		if !slices.Contains([]string{ovf.FirmwareBIOS, ovf.FirmwareEFI}, f) {
			return store.BadRequest("The firmware %q is invalid.", f)
		}
		if vm.Status == store.PoweredOn {
			return store.BadRequest("The firmware of VM %q can be changed only while it is powered off.", vm.Name)
		}
		c.Settings = true
		vm.Firmware = f
	}
	if spec.At("TimeSyncWithHost") != nil {
		c.Settings = true
		vm.TimeSync = spec.Bool("TimeSyncWithHost")
	}
	if os := spec.Str("OsType"); os != "" && os != vm.OS {
		c.Settings = true
		vm.OS = os
	}
	if v := spec.Str("HardwareVersion"); v != "" && v != vm.HardwareVersion {
		if !slices.Contains(vdcs.Hardware, v) {
			return store.BadRequest("The hardware version %q is invalid.", v)
		}
		if ovf.HardwareNumber(v) < ovf.HardwareNumber(vm.HardwareVersion) {
			return store.BadRequest("The hardware version of VM %q cannot be lowered from %s to %s.", vm.Name,
				vm.HardwareVersion, v)
		}
		c.Settings = true
		vm.HardwareVersion = v
	}
	return nil
}
