// SPDX-License-Identifier: Apache-2.0

package ovf

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Firmware types of VMs.
const (
	FirmwareBIOS = "bios"
	FirmwareEFI  = "efi"
)

// settingsVersion is the first API version with firmware and most boot options.
const settingsVersion = "37.1"

// CapabilitiesSection returns the VmCapabilities element of a VM. If root is true, the element is a document.
func CapabilitiesSection(site wire.Site, vm *store.VM, root bool) *xmltree.Node {
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

// bootOptionsNode returns the boot options that the requested API version has.
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

// firmwareNode returns the firmware of a VM, or nil for API versions without this element.
func firmwareNode(version string, vm *store.VM) *xmltree.Node {
	if version < settingsVersion {
		return nil
	}
	return xmltree.T("Firmware", api.OrElse(vm.Firmware, FirmwareBIOS))
}

// SnapshotSection returns the SnapshotSection element of a VM. If root is true, the element is a document.
func SnapshotSection(site wire.Site, vm *store.VM, root bool) *xmltree.Node {
	n := wire.Element("SnapshotSection", root)
	n.Add(api.Section(site.Href("vm", vm.ID)+"/snapshotSection", "snapshotSection"))
	n.Add(xmltree.T("ovf:Info", "Snapshot information section"))
	if s := vm.Snapshot; s != nil {
		n.Add(xmltree.New("Snapshot", xmltree.A("created", s.Created), xmltree.A("poweredOn", s.PoweredOn),
			xmltree.A("size", s.SizeMiB<<20)))
	}
	return n
}
