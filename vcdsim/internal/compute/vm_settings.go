// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Firmware that VMs start with.
const (
	firmwareBIOS = "bios"
	firmwareEFI  = "efi"
)

// settingsVersion is the API version that firmware and most boot options came with.
const settingsVersion = "37.1"

func vmSettingRoutes(add api.AddRoute) {
	const vm = "/api/vApp/vm-{vm}"
	add("GET", vm+"/vmCapabilities", func(r *api.Request) (*api.Response, error) {
		return showVM(r, func(r *api.Request, v *store.VM) *api.Response { return api.XML(capabilitiesSection(r.Site, v, true)) })
	}, cloud.LatencyLegacy)
	add("PUT", vm+"/vmCapabilities", putCapabilities, cloud.LatencyWrite)
	for action, enabled := range map[string]bool{"enableNestedHypervisor": true, "disableNestedHypervisor": false} {
		add("POST", vm+"/action/"+action, func(r *api.Request) (*api.Response, error) {
			return changeVMSetting(r, "hardware virtualization", func(v *store.VM) { v.NestedHypervisor = enabled })
		}, cloud.LatencyWrite)
	}
	add("POST", vm+"/action/upgradeHardwareVersion", func(r *api.Request) (*api.Response, error) {
		return changeVMSetting(r, "hardware version", func(v *store.VM) { v.HardwareVersion = newest(v.HardwareVersion) })
	}, cloud.LatencyWrite)
}

// changeVMSetting changes a setting of the hardware, which takes a VM that is off.
func changeVMSetting(r *api.Request, what string, edit func(*store.VM)) (*api.Response, error) {
	vm, err := IdleVM(r)
	if err != nil {
		return nil, err
	}
	if vm.Status != store.PoweredOff {
		return nil, store.BadRequest("The %s of VM %q can be changed only while it is powered off.", what, vm.Name)
	}
	c := &store.VMChange{VM: vm.Clone(), Settings: true}
	edit(&c.VM)
	return StartVM(r, vm, store.Work{Op: cloud.OpUpdateVM, Change: c})
}

// newest is the version of virtual hardware that one is upgraded to.
func newest(version string) string {
	if HardwareNumber(version) > HardwareNumber(vdcs.DefaultHardware) {
		return version
	}
	return vdcs.DefaultHardware
}

func putCapabilities(r *api.Request) (*api.Response, error) {
	return changeVM(r, func(_ *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
		c.Settings = true
		vm.MemoryHotAdd = tree.Bool("MemoryHotAddEnabled")
		vm.CPUHotAdd = tree.Bool("CpuHotAddEnabled")
		return nil
	})
}

func capabilitiesSection(site wire.Site, vm *store.VM, root bool) *xmltree.Node {
	n := wire.Element("VmCapabilities", root)
	path := "/api/vApp/vm-" + vm.ID + "/vmCapabilities/"
	n.Add([]xmltree.Attr{xmltree.A("href", site.Base()+path), xmltree.A("type", wire.Mime("vmCapabilitiesSection"))})
	if root {
		n.Add(site.Link("edit", path, wire.Mime("vmCapabilitiesSection")))
	}
	n.Add([]*xmltree.Node{
		xmltree.T("MemoryHotAddEnabled", vm.MemoryHotAdd),
		xmltree.T("CpuHotAddEnabled", vm.CPUHotAdd),
	})
	return n
}

// bootOptionsNode shows what the API version that was asked for knows.
func bootOptionsNode(version string, vm *store.VM) *xmltree.Node {
	o := vm.BootOptions
	n := xmltree.New("BootOptions", xmltree.T("BootDelay", o.DelayMS), xmltree.T("EnterBIOSSetup", o.EnterBIOS))
	if version < settingsVersion {
		return n
	}
	n.Add([]*xmltree.Node{
		xmltree.T("BootRetryEnabled", o.Retry),
		xmltree.T("BootRetryDelay", o.RetryDelayMS),
		xmltree.T("EfiSecureBootEnabled", o.SecureBoot),
		xmltree.T("NetworkBootProtocol", api.OrElse(o.NetworkProtocol, "IPv4")),
	})
	return n
}

// firmwareNode is what the machine starts with, nil for API versions that do not know it.
func firmwareNode(version string, vm *store.VM) *xmltree.Node {
	if version < settingsVersion {
		return nil
	}
	return xmltree.T("Firmware", api.OrElse(vm.Firmware, firmwareBIOS))
}

// readBoot reads BootOptions; what they do not name stays.
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

// readMachine reads from a VmSpecSection what kind of machine a VM is.
func readMachine(vm *store.VM, spec *xmltree.Node, c *store.VMChange) error {
	if f := spec.Str("Firmware"); f != "" && f != api.OrElse(vm.Firmware, firmwareBIOS) {
		if !slices.Contains([]string{firmwareBIOS, firmwareEFI}, f) {
			return store.BadRequest("The firmware %q is invalid.", f)
		}
		if vm.Status == store.PoweredOn {
			return store.BadRequest("The firmware of VM %q can be changed only while it is powered off.", vm.Name)
		}
		c.Settings = true
		vm.Firmware = f
	}
	if v := spec.Str("HardwareVersion"); slices.Contains(vdcs.Hardware, v) && v != vm.HardwareVersion {
		if HardwareNumber(v) < HardwareNumber(vm.HardwareVersion) {
			return store.BadRequest("The hardware version of VM %q cannot be lowered from %s to %s.", vm.Name,
				vm.HardwareVersion, v)
		}
		c.Settings = true
		vm.HardwareVersion = v
	}
	return nil
}

// changeMachine applies firmware, boot options, hardware version and hot-add settings.
func changeMachine(vm *store.VM, to *store.VM) {
	vm.Firmware = to.Firmware
	vm.BootOptions = to.BootOptions
	vm.HardwareVersion = to.HardwareVersion
	vm.CPUHotAdd = to.CPUHotAdd
	vm.MemoryHotAdd = to.MemoryHotAdd
	vm.NestedHypervisor = to.NestedHypervisor
}
