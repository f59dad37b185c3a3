// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/vim25/types"
)

func TestInstanceType(t *testing.T) {
	g := NewWithT(t)
	g.Expect(instanceType(4, 8192, "ubuntu64Guest")).To(Equal("vsphere-vm.cpu-4.mem-8gb.os-ubuntu"))
	g.Expect(instanceType(1, 512, "")).To(Equal("vsphere-vm.cpu-1.mem-0gb.os-unknown"))
	g.Expect(instanceType(2, 3000, "mystery")).To(Equal("vsphere-vm.cpu-2.mem-2gb.os-unknown"))
}

// TestShortNamesOfGuests covers the names that the vSphere CPI assigns, by kind of rule.
func TestShortNamesOfGuests(t *testing.T) {
	for id, want := range map[string]string{
		"asianux3_64Guest":        "asianux3",
		"centos64Guest":           "centos64",
		"centos7_64Guest":         "centos7",
		"centosGuest":             "centos",
		"coreos64Guest":           "coreos",
		"darwin16_64Guest":        "darwin",
		"darwin64Guest":           "darwin",
		"darwinGuest":             "darwin",
		"debian10_64Guest":        "debian10",
		"debian4Guest":            "debian4",
		"dosGuest":                "dos",
		"eComStation2Guest":       "eComStation2",
		"fedora64Guest":           "fedora",
		"freebsd64Guest":          "freebsd",
		"genericLinuxGuest":       "linux",
		"mandriva64Guest":         "mandriva",
		"netware4Guest":           "netware4",
		"openServer6Guest":        "openServer6",
		"opensuse64Guest":         "opensuse",
		"oracleLinux6_64Guest":    "oracleLinux6",
		"oracleLinux64Guest":      "oracleLinux",
		"os2Guest":                "os2",
		"other24xLinux64Guest":    "linux",
		"other3xLinuxGuest":       "linux",
		"otherGuest":              "other",
		"otherGuest64":            "other",
		"otherLinux64Guest":       "linux",
		"redhatGuest":             "rhel",
		"rhel7_64Guest":           "rhel7",
		"sjdsGuest":               "sjds",
		"sles12_64Guest":          "sles12",
		"sles64Guest":             "sles64",
		"slesGuest":               "sles",
		"solaris11_64Guest":       "solaris11",
		"suse64Guest":             "suse",
		"turboLinux64Guest":       "turbolinux",
		"ubuntu64Guest":           "ubuntu",
		"unixWare7Guest":          "unixware7",
		"vmkernel65Guest":         "vmkernel65",
		"vmkernelGuest":           "vmkernel",
		"vmwarePhoton64Guest":     "photon",
		"win2000AdvServGuest":     "win2000advserv",
		"win31Guest":              "win31",
		"windows7_64Guest":        "win7",
		"windows7Server64Guest":   "win7server",
		"windows9_64Guest":        "win10",
		"windows9Server64Guest":   "win10server",
		"windowsHyperVGuest":      "windowshyperv",
		"winLonghorn64Guest":      "winlonghorn",
		"winNetDatacenter64Guest": "winnetdatacenter",
		"winNTGuest":              "winnt",
		"winXPPro64Guest":         "winxppro",
		"winXPHomeGuest":          "winxphome",
		// Guests without a name in the vSphere CPI.
		"debian12_64Guest":           "debian12",
		"rhel9_64Guest":              "rhel9",
		"rockylinux_64Guest":         "rockylinux",
		"almalinux_64Guest":          "almalinux",
		"amazonlinux3_64Guest":       "amazonlinux3",
		"other6xLinux64Guest":        "linux",
		"sles15_64Guest":             "sles15",
		"windows2019srv_64Guest":     "win2019srv",
		"windows2019srvNext_64Guest": "win2022srv",
		"windows11_64Guest":          "win11",
		"freebsd13_64Guest":          "freebsd13",
	} {
		NewWithT(t).Expect(shortOS(id)).To(Equal(want), id)
	}
}

func TestEveryGuestHasAShortName(t *testing.T) {
	for _, id := range types.VirtualMachineGuestOsIdentifier("").Strings() {
		NewWithT(t).Expect(shortOS(id)).To(MatchRegexp(`^[A-Za-z][A-Za-z0-9]*$`), id)
		NewWithT(t).Expect(shortOS(id)).NotTo(Equal("unknown"), id)
	}
}

func TestUUIDs(t *testing.T) {
	g := NewWithT(t)
	g.Expect(uuidsOf("422E4956-ad22-1139-6d72-59cc8f26bc90")).To(Equal([]string{
		"422e4956-ad22-1139-6d72-59cc8f26bc90", "56492e42-22ad-3911-6d72-59cc8f26bc90",
	}), "first in the form of vCenter")
	g.Expect(uuidsOf("11111111-1111-1111-1111-111111111111")).To(HaveLen(1), "both byte orders match")
	g.Expect(uuidsOf("x")).To(BeNil())
	_, err := parseProviderID("vsphere://x")
	g.Expect(err).To(HaveOccurred())
	g.Expect(parseProviderID("VSPHERE://56492E42-22ad-3911-6d72-59cc8f26bc90")).To(ContainElement("422e4956-ad22-1139-6d72-59cc8f26bc90"))
}
