// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

const rawVM = `<VmSpecSection Modified="true"><ovf:Info/><OsType>debian10Guest</OsType><NumCpus>2</NumCpus><NumCoresPerSocket>1</NumCoresPerSocket>` +
	`<MemoryResourceMb><Configured>1024</Configured></MemoryResourceMb><DiskSection><DiskSettings><SizeMb>2048</SizeMb></DiskSettings></DiskSection>` +
	`<HardwareVersion>vmx-18</HardwareVersion></VmSpecSection>`

func TestStandaloneVMs(t *testing.T) {
	c := start(t, manual)
	m := c.model()
	nics := `<NetworkConnectionSection><ovf:Info/><PrimaryNetworkConnectionIndex>0</PrimaryNetworkConnectionIndex><NetworkConnection network="` +
		m.VDCs[0].Networks[0].Name +
		`"><NetworkConnectionIndex>0</NetworkConnectionIndex><IsConnected>true</IsConnected>` +
		`<IpAddressAllocationMode>POOL</IpAddressAllocationMode></NetworkConnection></NetworkConnectionSection>`
	source := c.sim.URL() + "/api/vAppTemplate/vm-" + m.Catalogs[0].Templates[0].VMs[0].ID
	for _, tc := range []struct {
		name, action, body string
		recompose          bool // is how it goes
	}{
		{
			name:   "a new VM",
			action: "createVm",
			body: `<CreateVmParams ` + xmlns + ` name="vm" powerOn="true"><CreateVm name="vm">` + rawVM + nics +
				`</CreateVm></CreateVmParams>`,
		},
		{
			name:   "from a template",
			action: "instantiateVmFromTemplate",
			body: `<InstantiateVmTemplateParams ` + xmlns +
				` name="vm" powerOn="true"><SourcedVmTemplateItem><Source href="` +
				source + `"/><VmGeneralParams><Description>d</Description></VmGeneralParams><VmTemplateInstantiationParams>` + nics +
				`</VmTemplateInstantiationParams></SourcedVmTemplateItem></InstantiateVmTemplateParams>`,
			recompose: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			vapp := c.ok(http.MethodPost, c.vdc()+"/action/"+tc.action, tc.body).xml.At("Owner").Attr("href")
			g.Expect(c.records("type=vApp&filter=isAutoNature==true")).To(HaveLen(1))
			g.Expect(c.get(vapp).xml.Bool("autoNature")).To(BeTrue())
			vm := c.get(vapp).xml.At("Children", "Vm")
			g.Expect(vm.Attr("name")).To(Equal("vm"))
			g.Expect(vm.Attr("status")).To(Equal("4"))
			g.Expect(vm.At("NetworkConnectionSection", "NetworkConnection").Str("IpAddress")).NotTo(BeEmpty())

			c.ok(http.MethodPost, vm.Attr("href")+"/action/undeploy", `<UndeployVAppParams `+xmlns+`/>`)
			if tc.recompose {
				c.ok(http.MethodPost, vapp+"/action/recomposeVApp", `<RecomposeVAppParams `+xmlns+
					`><DeleteItem href="`+vm.Attr("href")+`"/></RecomposeVAppParams>`)
			} else {
				c.ok(http.MethodDelete, vm.Attr("href"), "")
			}
			g.Expect(c.records("type=vApp")).To(BeEmpty(), "the vApp is deleted with its VM")
		})
	}
	c.refused(http.MethodPost, c.vdc()+"/action/createVm", `<CreateVmParams `+xmlns+`/>`, 400, "BAD_REQUEST")
	c.refused(http.MethodPost, c.vdc()+"/action/createVm", `<CreateVmParams `+xmlns+`><CreateVm/></CreateVmParams>`,
		400, "BAD_REQUEST")
}

func TestTheVAppOfAStandaloneVMFollowsItsNetworks(t *testing.T) {
	c := start(t)
	m := c.model()
	vapp := c.ok(http.MethodPost, c.vdc()+"/action/createVm", `<CreateVmParams `+xmlns+` name="vm"><CreateVm name="vm">`+rawVM+
		`</CreateVm></CreateVmParams>`).xml.At("Owner").Attr("href")
	vm := "/api/vApp/vm-" + c.state("vm").ID
	c.Expect(c.get(vapp).xml.At("NetworkConfigSection").All("NetworkConfig")).To(BeEmpty())

	c.ok(http.MethodPut, vm+"/networkConnectionSection", `<NetworkConnectionSection `+xmlns+
		`><ovf:Info/><NetworkConnection network="`+m.VDCs[0].Networks[0].Name+
		`"><NetworkConnectionIndex>0</NetworkConnectionIndex><IsConnected>true</IsConnected>`+
		`<IpAddressAllocationMode>POOL</IpAddressAllocationMode></NetworkConnection></NetworkConnectionSection>`)

	c.Expect(c.state("vm").NICs[0].Address).NotTo(BeEmpty())
	c.Expect(c.get(vapp).xml.At("NetworkConfigSection").All("NetworkConfig")).To(HaveLen(1))
}

func TestAVMWithoutATemplateIsAddedToAVApp(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	c.ok(http.MethodPost, vapp+"/action/recomposeVApp",
		`<RecomposeVAppParams `+xmlns+`><CreateItem name="raw">`+rawVM+`</CreateItem></RecomposeVAppParams>`)
	vm := c.state("raw")
	c.Expect([]any{
		vm.OS, vm.HardwareVersion, vm.CPUs, vm.MemoryMiB,
		vm.Disks[0].SizeMiB,
	}).To(Equal([]any{"debian10Guest", "vmx-18", int64(2), int64(1024), int64(2048)}))
	c.refused(http.MethodPost, vapp+"/action/recomposeVApp",
		`<RecomposeVAppParams `+xmlns+`><CreateItem name="raw">`+rawVM+`</CreateItem></RecomposeVAppParams>`, 400,
		"DUPLICATE_NAME")
}
