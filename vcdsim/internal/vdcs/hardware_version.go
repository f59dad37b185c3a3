// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Hardware lists the versions of virtual hardware, oldest first.
var Hardware = []string{"vmx-14", "vmx-15", "vmx-17", "vmx-18", "vmx-19", "vmx-20", "vmx-21"}

// A guestOS is an operating system that VMs can have, with the number that VCD assigns to it.
type guestOS struct {
	id, name string
	number   int
}

// guestFamilies lists the supported operating systems by family.
var guestFamilies = []struct {
	name    string
	number  int
	systems []guestOS
}{
	{"Microsoft Windows", 1, []guestOS{{"windows2019srvNext_64Guest", "Microsoft Windows Server 2022 (64-bit)", 133}}},
	{
		"Linux",
		2,
		[]guestOS{
			{"ubuntu64Guest", "Ubuntu Linux (64-bit)", 94},
			{"vmwarePhoton64Guest", "VMware Photon OS (64-bit)", 122},
			{"rhel4Guest", "Red Hat Enterprise Linux 4 (32-bit)", 66},
			{"rhel4_64Guest", "Red Hat Enterprise Linux 4 (64-bit)", 67},
			{"rhel9_64Guest", "Red Hat Enterprise Linux 9 (64-bit)", 140},
			{"sles10_64Guest", "SUSE Linux Enterprise 10 (64-bit)", 85},
			{"sles15_64Guest", "SUSE Linux Enterprise 15 (64-bit)", 128},
			{"debian12_64Guest", "Debian GNU/Linux 12 (64-bit)", 150},
			{"otherLinux64Guest", "Other Linux (64-bit)", 101},
		},
	},
}

// hardwareVersions returns the hardware versions that a VDC supports, with the default.
func hardwareVersions(site wire.Site, vdcID string) *xmltree.Node {
	versions := xmltree.New("SupportedHardwareVersions")
	for _, v := range Hardware {
		n := xmltree.T("SupportedHardwareVersion", v)
		n.Add([]xmltree.Attr{
			xmltree.A("default", v == DefaultHardware),
			xmltree.A("name", v),
			xmltree.A("href", site.Base()+"/api/vdc/"+vdcID+"/hwv/"+v),
			xmltree.A("type", wire.Mime("virtualHardwareVersion")),
		})
		versions.Add(n)
	}
	return xmltree.New("Capabilities", versions)
}

// rangeNode returns a range from its first to its last number.
func rangeNode(begin, end int) *xmltree.Node {
	return xmltree.New("Range", xmltree.A("begin", begin), xmltree.A("end", end))
}

// getHardwareVersion returns the capabilities of a version of virtual hardware.
func getHardwareVersion(r *api.Request, _ *store.Org, v *store.VDC) (*api.Response, error) {
	name := r.Vars["version"]
	if !slices.Contains(Hardware, name) {
		return nil, store.Forbidden("VDC_HARDWARE_VERSION_VIEW", name)
	}
	T := xmltree.T
	path := "/api/vdc/" + v.ID + "/hwv/" + name
	n := xmltree.New("VirtualHardwareVersion", wire.Namespaces(), xmltree.A("href", r.Site.Base()+path),
		xmltree.A("type", wire.Mime("virtualHardwareVersion")),
		r.Site.Link("up", "/api/vdc/"+v.ID, wire.Mime("vdc")),
		T("name", name), T("maxCoresPerSocket", 64))
	systems := xmltree.New("supportedOperatingSystems")
	for _, f := range guestFamilies {
		family := xmltree.New("OperatingSystemFamilyInfo", T("Name", f.name), T("OperatingSystemFamilyId", f.number))
		for _, x := range f.systems {
			family.Add(xmltree.New("OperatingSystem", T("OperatingSystemId", x.number),
				T("MinimumHardDiskSizeGigabytes", 8), T("MinimumMemoryMegabytes", 512),
				T("Name", x.name), T("InternalName", x.id), T("Supported", true),
				T("x64", strings.Contains(x.id, "64")), T("RecommendedFirmware", "bios"),
				T("SupportedFirmware", "bios"), T("SupportedFirmware", "efi"), T("SupportsTPM", false)))
		}
		systems.Add(family)
	}
	n.Add([]*xmltree.Node{
		systems,
		T("maxMemorySizeMb", 6<<20),
		T("maxCPUs", 128),
		T("maxNICs", 10),
		T("supportsNestedHV", true),
		T("supportsHotPlugPCI", true),
		T("supportsHotAdd", true),
		T("supportedMemorySizeGb", 1),
		T("supportedMemorySizeGb", 6144),
		T("supportedCoresPerSocket", 1),
		T("supportedCoresPerSocket", 64),
		xmltree.New("HardDiskAdapter", xmltree.A("id", "VirtualSCSI"), xmltree.A("legacyId", 5),
			xmltree.A("name", "Paravirtual (SCSI)"),
			xmltree.A("maximumDiskSizeGb", 62<<10), xmltree.New("BusNumberRanges", rangeNode(0, 3)),
			xmltree.New("UnitNumberRanges", rangeNode(0, 6), rangeNode(8, 15))),
	})
	return api.XML(n), nil
}

// DefaultHardware is the hardware version of a VM whose request does not specify one.
const DefaultHardware = "vmx-19"
