// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// image is the template of the machines in these tests.
func image() vcd.Template {
	return vcd.Template{
		Ref:        vcd.Ref{Name: "ubuntu"},
		Kubernetes: "v1.36.3",
		Hardware:   "vmx-19",
		DiskMiB:    20 << 10,
	}
}

func diskOf(size string) *infrav1.VCDMachineSpec {
	return &infrav1.VCDMachineSpec{DiskSize: ptr.To(resource.MustParse(size))}
}

func TestImagesMustHaveTheKubernetesVersion(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	g.Expect(checks.Kubernetes(image(), "v1.36.3+vendor.1")).To(BeNil())
	g.Expect(checks.Kubernetes(image(), "")).To(BeNil(), "the machines have no version")
	g.Expect(checks.Kubernetes(vcd.Template{}, "v1.36.3")).To(BeNil(), "the image does not show its version")
	g.Expect(checks.Kubernetes(image(), "v1.35.4")).To(HaveValue(And(
		HaveField("Reason", infrav1.KubernetesVersionMismatchReason),
		HaveField("Message", "template ubuntu has Kubernetes v1.36.3, but the version of the machines is v1.35.4"))))
}

func TestDisksDoNotShrink(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	g.Expect(checks.DiskSize(&infrav1.VCDMachineSpec{}, image())).To(BeNil())
	g.Expect(checks.DiskSize(diskOf("20Gi"), image())).To(BeNil())
	g.Expect(checks.DiskSize(diskOf("10Gi"), image())).To(HaveValue(And(HaveField("Reason", infrav1.DiskTooSmallReason),
		HaveField("Message", "spec.diskSize is 10Gi, but the disk of template ubuntu has 20480Mi and cannot shrink"))))
}

func TestExpandingALinkedCloneRequiresARight(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	fast := vdc(func(v *vcd.VDC) { v.FastProvisioning = true })

	g.Expect(checks.GrowsLinkedClone(diskOf("40Gi"), image(), fast)).To(BeTrue())
	g.Expect(checks.GrowsLinkedClone(diskOf("20Gi"), image(), fast)).To(BeFalse())
	g.Expect(checks.GrowsLinkedClone(diskOf("40Gi"), image(), vdc())).To(BeFalse())
	g.Expect(checks.Consolidation(fast, true)).To(BeNil())
	g.Expect(checks.Consolidation(fast, false)).To(HaveValue(And(HaveField("Reason", infrav1.ForbiddenReason),
		HaveField("Message", ContainSubstring(vcd.RightConsolidate)))))
}

func TestVirtualHardwareIsOnlyUpgraded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	newSpec := func(version string) *infrav1.VCDMachineSpec { return &infrav1.VCDMachineSpec{HardwareVersion: version} }

	g.Expect(checks.HardwareUpgrade(newSpec(""), image())).To(BeNil())
	g.Expect(checks.HardwareUpgrade(newSpec("vmx-21"), image())).To(BeNil())
	g.Expect(checks.HardwareUpgrade(newSpec("vmx-19"), vcd.Template{Hardware: "vmx-9"})).To(BeNil())
	g.Expect(checks.HardwareUpgrade(newSpec("vmx-9"), image())).To(HaveValue(And(
		HaveField("Reason", infrav1.PlacementInvalidReason),
		HaveField("Message", "spec.hardwareVersion is vmx-9, but template ubuntu has vmx-19, and VCD cannot downgrade it"))))
}

func TestVirtualHardwareMustBeSupportedByTheVDC(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const asks = "spec.hardwareVersion"

	g.Expect(checks.HardwareSupported(asks, "vmx-19", vdc(), []string{"vmx-14", "vmx-19"})).To(BeNil())
	g.Expect(checks.HardwareSupported(asks, "", vdc(), []string{"vmx-14"})).To(BeNil(), "no version is requested")
	g.Expect(checks.HardwareSupported(asks, "vmx-99", vdc(), nil)).To(BeNil(), "the VDC does not list its versions")
	g.Expect(checks.HardwareSupported(asks, "vmx-99", vdc(), []string{"vmx-14", "vmx-19"})).To(HaveValue(And(
		HaveField("Reason", infrav1.PlacementInvalidReason),
		HaveField("Message", "spec.hardwareVersion is vmx-99, but VDC acme-vdc supports vmx-14, vmx-19"))))
}

func TestNodeRequirementsOfImages(t *testing.T) {
	t.Parallel()
	tests := []struct {
		guestOS string
		want    infrav1.NodeInfo
	}{
		{"ubuntu64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}},
		{"other5xLinux64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}},
		{"vmwarePhoton64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}},
		{"arm-ubuntu-64", infrav1.NodeInfo{Architecture: "arm64", OperatingSystem: "linux"}},
		{"windows2019srvNext_64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "windows"}},
		{"darwin19_64Guest", infrav1.NodeInfo{Architecture: "amd64"}},
		{"ubuntuGuest", infrav1.NodeInfo{OperatingSystem: "linux"}},
		{"", infrav1.NodeInfo{}},
	}
	for _, tt := range tests {
		t.Run(tt.guestOS, func(t *testing.T) {
			NewWithT(t).Expect(checks.NodeInfo(tt.guestOS)).To(Equal(tt.want))
		})
	}
}
