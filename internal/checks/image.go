// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"
	"strconv"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Kubernetes reports a template whose Kubernetes version differs from the version of its machines. It reports nothing
// if one of them is unknown.
func Kubernetes(t vcd.Template, version string) *Finding {
	if t.Kubernetes == "" || version == "" || vcd.SameKubernetes(t.Kubernetes, version) {
		return nil
	}
	return finding(infrav1.KubernetesVersionMismatchReason, "when you change the version of a KubeadmControlPlane or MachineDeployment, also set a new VCDMachineTemplate with an image of this version",
		"template %s has Kubernetes %s, but the version of the machines is %s", t.Name, t.Kubernetes, version)
}

// DiskSize reports a spec whose disk size is smaller than the disk of its template.
func DiskSize(spec *infrav1.VCDMachineSpec, t vcd.Template) *Finding {
	if requested := sizes.Disk(spec); requested == 0 || requested >= t.DiskMiB {
		return nil
	}
	return finding(infrav1.DiskTooSmallReason, "set at least this size, or remove the field",
		"spec.diskSize is %s, but the disk of template %s has %dMi and cannot shrink", spec.DiskSize, t.Name, t.DiskMiB)
}

// GrowsLinkedClone reports whether the disk of a machine must grow in a VDC with fast provisioning, where disks can
// grow only after the VM is consolidated.
func GrowsLinkedClone(spec *infrav1.VCDMachineSpec, t vcd.Template, vdc vcd.VDC) bool {
	return vdc.FastProvisioning && sizes.Disk(spec) > t.DiskMiB
}

// Consolidation reports that disks must grow, but the user may not consolidate VMs.
func Consolidation(vdc vcd.VDC, may bool) *Finding {
	if may {
		return nil
	}
	return finding(infrav1.ForbiddenReason, "grant the right to the user of the identity, remove spec.diskSize, or ask the provider to disable fast provisioning", "VDC %s uses fast provisioning: disks can be expanded only after a consolidation of the VM, for which the right %q is missing", vdc.Name, vcd.RightConsolidate)
}

// HardwareUpgrade reports a spec whose hardware version is older than that of its template.
func HardwareUpgrade(spec *infrav1.VCDMachineSpec, t vcd.Template) *Finding {
	requested, asks := HardwareNumber(spec.HardwareVersion)
	if has, known := HardwareNumber(t.Hardware); !asks || !known || requested >= has {
		return nil
	}
	return finding(infrav1.PlacementInvalidReason, "set at least this version", "spec.hardwareVersion is %s, but template %s has %s, and VCD cannot downgrade it", spec.HardwareVersion, t.Name, t.Hardware)
}

// HardwareSupported reports a hardware version that a VDC does not support. asks names the field or template that
// requests the version. If supported is empty, the versions of the VDC are unknown and nothing is reported.
func HardwareSupported(asks, version string, vdc vcd.VDC, supported []string) *Finding {
	if version == "" || len(supported) == 0 || slices.Contains(supported, version) {
		return nil
	}
	return finding(infrav1.PlacementInvalidReason, "use one of these versions or another VDC", "%s is %s, but VDC %s supports %s",
		asks, version, vdc.Name, strings.Join(supported, ", "))
}

// HardwareNumber returns the number of a hardware version such as vmx-19.
func HardwareNumber(version string) (number int, known bool) {
	number, err := strconv.Atoi(strings.TrimPrefix(version, "vmx-"))
	return number, err == nil
}

// NodeInfo returns the operating system and architecture of an image, derived from vSphere's name of its guest
// operating system. Fields are empty if unknown.
func NodeInfo(guestOS string) infrav1.NodeInfo {
	var info infrav1.NodeInfo
	name := strings.ToLower(guestOS)
	switch {
	case strings.HasPrefix(name, "win"):
		info.OperatingSystem = "windows"
	case name == "", strings.HasPrefix(name, "darwin"), strings.HasPrefix(name, "freebsd"),
		strings.HasPrefix(name, "solaris"), strings.HasPrefix(name, "vmkernel"):
	default:
		info.OperatingSystem = "linux"
	}
	switch {
	case strings.Contains(name, "arm"):
		info.Architecture = "arm64"
	case strings.Contains(name, "64"):
		info.Architecture = "amd64"
	}
	return info
}
