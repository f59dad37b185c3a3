// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAVDCIsUpdated(t *testing.T) {
	c := start(t)
	p := c.provider()
	path := "/api/admin/vdc/" + c.model().VDCs[0].ID
	p.ok(http.MethodPut, path,
		`<AdminVdc `+xmlns+` name="acme-vdc"><Description>changed</Description><IsEnabled>true</IsEnabled>`+
			`<ComputeCapacity><Cpu><Units>GHz</Units><Allocated>2</Allocated><Limit>4</Limit></Cpu><Memory><Units>MB</Units><Allocated>512</Allocated><Limit>1024</Limit></Memory></ComputeCapacity>`+
			`<NetworkQuota>5</NetworkQuota><VmQuota>7</VmQuota><ResourceGuaranteedCpu>0.6</ResourceGuaranteedCpu><VCpuInMhz>2000</VCpuInMhz>`+
			`<IsThinProvision>false</IsThinProvision><OverCommitAllowed>false</OverCommitAllowed></AdminVdc>`)
	vdc := p.get(path).xml
	c.Expect([]string{
		vdc.Str("ComputeCapacity", "Cpu", "Allocated"),
		vdc.Str("ComputeCapacity", "Cpu", "Units"),
		vdc.Str("ComputeCapacity", "Memory", "Limit"),
		vdc.Str("NetworkQuota"),
		vdc.Str("VmQuota"),
		vdc.Str("ResourceGuaranteedCpu"),
		vdc.Str("VCpuInMhz"),
		vdc.Str("IsThinProvision"),
		vdc.Str("OverCommitAllowed"),
		vdc.Str("IsEnabled"),
	}).To(Equal([]string{"2000", "MHz", "1024", "5", "7", "0.6", "2000", "false", "false", "true"}))
	c.Expect(vdc.At("ResourcePoolRefs", "VimObjectRef")).NotTo(BeNil())
	c.Expect(c.records("type=orgVdc&filter=name==acme-vdc")[0].Attr("cpuLimitMhz")).To(Equal("4000"))
	c.Expect(c.get(path).xml.At("ResourcePoolRefs")).To(BeNil(), "a tenant cannot see vCenter objects")
}

func TestAVDCNeedsGuaranteedMemorySinceVCD106(t *testing.T) {
	c := start(t).provider()
	provider := c.records("type=providerVdc")[0].Attr("href")
	body := func(name string) string {
		return `<CreateVdcParams ` + xmlns + ` name="` + name + `"><AllocationModel>Flex</AllocationModel><ProviderVdcReference href="` +
			provider + `"/><IncludeMemoryOverhead>true</IncludeMemoryOverhead></CreateVdcParams>`
	}
	path := "/api/admin/org/" + c.model().ID + "/vdcsparams"

	c.version = "38.1"
	c.Expect(c.call(http.MethodPost, path, body("older")).status).To(Equal(http.StatusCreated))
	c.version = "39.0"
	c.refused(http.MethodPost, path, body("newer"), 400, "BAD_REQUEST")
}

func TestADisabledVDCRejectsCreationAndPowerOn(t *testing.T) {
	c := start(t)
	vm := c.node("node")
	running := c.node("running")
	c.ok(http.MethodPost, running+"/power/action/powerOn", "")
	admin := "/api/admin/vdc/" + c.model().VDCs[0].ID
	disable := func(enabled string) {
		c.provider().ok(http.MethodPut, admin,
			`<AdminVdc `+xmlns+` name="acme-vdc"><IsEnabled>`+enabled+`</IsEnabled></AdminVdc>`)
	}
	disable("false")
	c.Expect(c.records("type=orgVdc&filter=name==acme-vdc")[0].Attr("isEnabled")).To(Equal("false"))
	vapp := "/api/vApp/vapp-" + c.state("node").VAppID
	c.refused(http.MethodPost, c.vdc()+"/action/composeVApp", c.compose("x", ""), 400, "BAD_REQUEST")
	c.refused(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item("more", "", "")), 400, "BAD_REQUEST")
	c.refused(http.MethodPost, vm+"/power/action/powerOn", "", 400, "BAD_REQUEST")
	c.refused(http.MethodPost, vapp+"/power/action/powerOn", "", 400, "BAD_REQUEST")
	c.refused(http.MethodPost, vapp+"/action/deploy", "", 400, "BAD_REQUEST")
	c.Expect(c.state("running").PoweredOn).To(BeTrue())
	c.ok(http.MethodPost, running+"/power/action/powerOff", "")
	disable("true")
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
}

func TestStorageProfilesAreAddedToAndRemovedFromAVDC(t *testing.T) {
	c := start(t)
	p := c.provider()
	vdc := "/api/admin/vdc/" + c.model().VDCs[0].ID
	profile := func(name string) string {
		for _, x := range p.get(vdc).xml.At("VdcStorageProfiles").All("VdcStorageProfile") {
			if x.Attr("name") == name {
				return x.Attr("href")
			}
		}
		return ""
	}
	source := p.get(profile("fast")).xml.At("ProviderVdcStorageProfile").Attr("href")
	change := func(name, enabled, isDefault string) string {
		return `<AdminVdcStorageProfile ` + xmlns + ` name="` + name + `"><Enabled>` + enabled + `</Enabled><Units>MB</Units><Limit>4096</Limit><Default>` + isDefault + `</Default></AdminVdcStorageProfile>`
	}
	remove := func(name string) string {
		return `<UpdateVdcStorageProfiles ` + xmlns + `><RemoveStorageProfile href="` + strings.Replace(profile(name), "/admin", "", 1) + `"/></UpdateVdcStorageProfiles>`
	}
	const profiles = "/vdcStorageProfiles"
	c.Expect(c.call(http.MethodGet, profile("fast"), "").status).To(Equal(http.StatusForbidden), "it belongs to the provider")
	p.refused(http.MethodPost, vdc+profiles, remove("fast"), 400, "BAD_REQUEST")
	p.refused(http.MethodPut, profile("standard"), change("standard", "false", "false"), 400, "BAD_REQUEST")

	c.Expect(p.call(http.MethodPut, profile("fast"), change("fast", "true", "true")).status).To(Equal(http.StatusOK))
	c.Expect(p.get(profile("standard")).xml.Bool("Default")).To(BeFalse(), "there is exactly one default")
	c.Expect(p.get(profile("fast")).xml.Str("Limit")).To(Equal("4096"))
	c.Expect(p.call(http.MethodPut, profile("standard"),
		change("standard", "false", "false")).status).To(Equal(http.StatusOK))
	standard := p.get(profile("standard")).xml.At("ProviderVdcStorageProfile").Attr("href")
	p.ok(http.MethodPost, vdc+profiles, remove("standard"))
	c.Expect(profile("standard")).To(BeEmpty())

	add := func(href string) string {
		return `<UpdateVdcStorageProfiles ` + xmlns +
			`><AddStorageProfile><Enabled>true</Enabled><Units>GB</Units><Limit>2</Limit><Default>false</Default>` +
			`<ProviderVdcStorageProfile href="` + href + `"/></AddStorageProfile></UpdateVdcStorageProfiles>`
	}
	p.refused(http.MethodPost, vdc+profiles, add(source), 400, "DUPLICATE_NAME")
	p.refused(http.MethodPost, vdc+profiles, add(standard), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodPost, vdc+profiles, add(source), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}

func TestANewDiskUsesTheRequestedBusAndUnit(t *testing.T) {
	c := start(t)
	vm := c.node("node")
	have := c.state("node").Disks[0]
	disk := func(id, bus, unit string) string {
		if id != "" {
			id = "<DiskId>" + id + "</DiskId>"
		}
		return `<DiskSettings>` + id + `<SizeMb>20480</SizeMb><UnitNumber>` + unit + `</UnitNumber><BusNumber>` + bus + `</BusNumber><AdapterType>4</AdapterType></DiskSettings>`
	}
	body := `<Vm ` + xmlns + ` name="node"><VmSpecSection Modified="true"><DiskSection>` + disk(have.ID, "0", "0") + disk("", "1", "0") + disk("", "0", "0") + `</DiskSection></VmSpecSection></Vm>`
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", body)
	var units [][2]int
	var ids []string
	for _, d := range c.state("node").Disks {
		units = append(units, [2]int{d.Bus, d.Unit})
		ids = append(ids, d.ID)
	}
	c.Expect(units).To(Equal([][2]int{{0, 0}, {1, 0}, {0, 1}}), "the last disk's unit was in use")
	c.Expect(ids).To(Equal([]string{"2000", "2016", "2001"}))
	c.Expect(c.get(vm).xml.At("VmSpecSection", "DiskSection").All("DiskSettings")[1].Str("AdapterType")).To(Equal("4"))
	c.refused(http.MethodPost, vm+"/action/reconfigureVm", strings.Replace(body, "<BusNumber>1<", "<BusNumber>9<", 1),
		400, "BAD_REQUEST")
}
