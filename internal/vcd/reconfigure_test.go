// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

const vmDocument = `<?xml version="1.0" encoding="UTF-8"?>
<Vm xmlns="http://www.vmware.com/vcloud/v1.5" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
    xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
    xmlns:vmw="http://www.vmware.com/schema/ovf" name="cp-0" status="8" id="urn:vcloud:vm:22222222-2222-4222-8222-222222222222">
  <Link rel="edit" href="https://x/"/>
  <Description>cluster-api-provider-vcd cluster=c machine=m</Description>
  <Tasks/>
  <ovf:VirtualHardwareSection ovf:transport="">
    <ovf:Info>Virtual hardware requirements</ovf:Info>
    <ovf:Item><rasd:HostResource xmlns:ns13="http://www.vmware.com/vcloud/v1.5" ns13:capacity="20480"></rasd:HostResource>
      <rasd:InstanceID>2000</rasd:InstanceID><rasd:ResourceType>17</rasd:ResourceType>
      <rasd:VirtualQuantity>21474836480</rasd:VirtualQuantity><rasd:VirtualQuantityUnits>byte</rasd:VirtualQuantityUnits></ovf:Item>
    <vmw:ExtraConfig ovf:required="false" vmw:key="their.key" vmw:value="1 &lt; 2 &amp; &quot;3&quot;"/>
    <vmw:ExtraConfig ovf:required="false" vmw:key="their.empty" vmw:value=""/>
    <vmw:ExtraConfig ovf:required="false" vmw:key="guestinfo.userdata" vmw:value="old"/>
    <Link rel="edit" href="https://x/virtualHardwareSection/"/>
  </ovf:VirtualHardwareSection>
  <VmSpecSection Modified="false">
    <ovf:Info>Specification</ovf:Info>
    <NumCpus>2</NumCpus>
    <DiskSection>
      <DiskSettings><DiskId>2001</DiskId><SizeMb>99999</SizeMb><Disk href="https://x/api/disk/55555555-5555-4555-8555-555555555555" name="pv"/></DiskSettings>
      <DiskSettings><DiskId>2000</DiskId><SizeMb>20480</SizeMb><VirtualQuantityUnit>byte</VirtualQuantityUnit><VirtualQuantity>21474836480</VirtualQuantity></DiskSettings>
    </DiskSection>
    <Unknown xmlns:n="http://example.com/new" n:thing="kept"/>
  </VmSpecSection>
  <NetworkConnectionSection><ovf:Info/></NetworkConnectionSection>
</Vm>`

// extraConfigOf reads a request back with the SDK's type.
func extraConfigOf(g Gomega, body []byte) map[string]string {
	var vm types.Vm
	g.Expect(xml.Unmarshal(body, &vm)).To(Succeed())
	return vmFrom(&vm).ExtraConfig
}

func TestReconfiguredSendsOnlyKeysThatChange(t *testing.T) {
	g := NewWithT(t)

	body, err := reconfigured([]byte(vmDocument), VMChange{ExtraConfig: map[string]string{
		"guestinfo.userdata": "new",
		"guestinfo.metadata": "<ä>",
		"guestinfo.absent":   "",
	}})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(extraConfigOf(g, body)).To(Equal(map[string]string{
		"guestinfo.userdata": "new",
		"guestinfo.metadata": "<ä>",
	}))
	text := string(body)
	g.Expect(text).To(ContainSubstring("<Description>cluster-api-provider-vcd cluster=c machine=m</Description>"))
	g.Expect(text).To(ContainSubstring(`name="cp-0"`))
	g.Expect(text).To(ContainSubstring(
		`<ovf:Item><rasd:HostResource xmlns:ns13="http://www.vmware.com/vcloud/v1.5" ns13:capacity="20480">`))
	for _, section := range []string{"VmSpecSection", "NetworkConnectionSection", "Tasks"} {
		g.Expect(text).NotTo(ContainSubstring(section), "unchanged sections are not sent")
	}
	g.Expect(strings.Index(text, "guestinfo.metadata")).To(BeNumerically("<",
		strings.Index(text, `<Link rel="edit" href="https://x/virtual`)))
}

func TestReconfiguredExpandsTheVMsDisk(t *testing.T) {
	g := NewWithT(t)

	body, err := reconfigured([]byte(vmDocument), VMChange{DiskMiB: 40960})

	g.Expect(err).NotTo(HaveOccurred())
	var vm types.Vm
	g.Expect(xml.Unmarshal(body, &vm)).To(Succeed())
	g.Expect(vm.VmSpecSection.Modified).To(HaveValue(BeTrue()))
	disks := vm.VmSpecSection.DiskSection.DiskSettings
	g.Expect(disks).To(HaveLen(2))
	g.Expect(disks[0].SizeMb).To(Equal(int64(99999)), "an independent disk is unchanged")
	g.Expect(disks[1].SizeMb).To(Equal(int64(40960)))
	g.Expect(disks[1].VirtualQuantity).To(HaveValue(Equal(int64(40960) << 20)))
	g.Expect(string(body)).To(ContainSubstring(`<Unknown xmlns:n="http://example.com/new" n:thing="kept">`))
	g.Expect(vm.VirtualHardwareSection).To(BeNil())
}

func TestReconfiguredKeepsBothPlacesOfADiskInStep(t *testing.T) {
	g := NewWithT(t)

	body, err := reconfigured([]byte(vmDocument), VMChange{DiskMiB: 40960, ExtraConfig: map[string]string{"a": "b"}})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(body)).To(ContainSubstring(`ns13:capacity="40960"`))
	g.Expect(string(body)).To(ContainSubstring(`<rasd:VirtualQuantity>42949672960</rasd:VirtualQuantity>`))
}

func TestReconfiguredRejectsInvalidChanges(t *testing.T) {
	tests := []struct {
		name, document string
		change         VMChange
		kind           error
		text           string
	}{
		{
			name:     "shrinking",
			document: vmDocument,
			change:   VMChange{DiskMiB: 1024},
			kind:     ErrInvalid,
			text:     `VM "cp-0" has a disk of 20480 MiB, which cannot shrink to 1024 MiB`,
		},
		{
			name:     "a VM without disks",
			document: `<Vm name="cp-0"/>`,
			change:   VMChange{DiskMiB: 1},
			kind:     ErrInvalid,
			text:     `VM "cp-0" has no disks that are visible to this user`,
		},
		{
			name:     "a VM without hardware",
			document: `<Vm name="cp-0"/>`,
			change:   VMChange{ExtraConfig: map[string]string{"a": "b"}},
			kind:     ErrInvalid,
			text:     `VM "cp-0" has no hardware section that is visible to this user`,
		},
		{name: "not XML", document: `hello`, change: VMChange{}, kind: ErrUnavailable, text: "the response is not XML from VCD"},
		{name: "broken XML", document: `<Vm><a></Vm>`, change: VMChange{}, kind: ErrUnavailable, text: "the response is not XML from VCD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := reconfigured([]byte(tt.document), tt.change)

			g.Expect(err).To(MatchError(tt.kind))
			g.Expect(err.Error()).To(Equal(tt.text))
		})
	}
}

// recordings returns documents of real VCDs, which are not part of this repository.
func recordings(t *testing.T, pattern string) []string {
	t.Helper()
	dir := os.Getenv("VCD_GROUNDTRUTH")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "groundtruth")
	}
	files, err := filepath.Glob(filepath.Join(dir, "recordings", pattern))
	if err != nil || len(files) == 0 {
		t.Skip("no recordings of a real VCD: set VCD_GROUNDTRUTH to their folder")
	}
	return files
}

func TestRecordedVMsAreRead(t *testing.T) {
	for _, file := range recordings(t, "*_api_vApp_vm-????????-????-????-????-????????????.xml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			raw, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			var doc types.Vm
			g.Expect(xml.Unmarshal(raw, &doc)).To(Succeed())

			vm := vmFrom(&doc)

			g.Expect(vm.ID).To(HavePrefix("urn:vcloud:vm:"))
			g.Expect(vm.VApp.ID).To(HavePrefix("urn:vcloud:vapp:"))
			g.Expect(vm.CPUs).To(BeNumerically(">", 0))
			g.Expect(vm.MemoryMiB).To(BeNumerically(">", 0))
			g.Expect(vm.NICs).NotTo(BeEmpty())
			g.Expect(vm.StorageProfile.ID).To(HavePrefix("urn:vcloud:vdcstorageProfile:"))
			body, err := reconfigured(raw, VMChange{ExtraConfig: map[string]string{"guestinfo.a": "b"}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(extraConfigOf(g, body)).To(HaveKeyWithValue("guestinfo.a", "b"))
		})
	}
}

func TestRecordedVAppsAreRead(t *testing.T) {
	for _, file := range recordings(t, "*_api_vApp_vapp-*.xml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			raw, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			var doc types.VApp
			g.Expect(xml.Unmarshal(raw, &doc)).To(Succeed())

			vApp := vAppFrom(&doc)

			g.Expect(vApp.ID).To(HavePrefix("urn:vcloud:vapp:"))
			g.Expect(vApp.Name).NotTo(BeEmpty())
			g.Expect(vApp.StorageLease).To(BeNumerically(">=", 0))
		})
	}
}
