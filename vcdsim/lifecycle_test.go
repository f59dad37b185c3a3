// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestLifecycleOfAVM(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	c.Expect(c.get(vapp).xml.Attr("status")).To(Equal("1"), "an empty vApp is resolved")

	small := c.sim.State().Model.Policies[1].ID
	c.ok(http.MethodPost, vapp+"/action/recomposeVApp", recompose(
		c.item("node-1", nic("POOL", ""), `<StorageProfile href="/api/vdcStorageProfile/`+c.model().VDCs[0].StorageProfiles[1].ID+`"/>
<ComputePolicy><VmSizingPolicy href="/cloudapi/1.0.0/vdcComputePolicies/urn:vcloud:vdcComputePolicy:`+small+`"/></ComputePolicy>`),
		c.item("node-2", nic("MANUAL", "192.168.100.200"), "")))
	node := c.state("node-1")
	c.Expect(node.Status).To(Equal(vcdsim.PoweredOff))
	c.Expect(node.NICs[0].Address).To(Equal("192.168.100.10"))
	c.Expect(node.SizingPolicyID).To(Equal(small))
	c.Expect(node.MemoryMiB).To(BeEquivalentTo(4096))
	c.Expect(c.state("node-2").NICs[0].Address).To(Equal("192.168.100.200"))

	vm := "/api/vApp/vm-" + node.ID
	c.ok(http.MethodPost, vm+"/action/consolidate", "")
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", `<Vm `+xmlns+` name="node-1"><Description>marked</Description>
<ovf:VirtualHardwareSection><ovf:Info/><vmw:ExtraConfig vmw:key="guestinfo.metadata" vmw:value="abc"/></ovf:VirtualHardwareSection>
<VmSpecSection Modified="true"><ovf:Info/><DiskSection><DiskSettings><DiskId>2000</DiskId><SizeMb>40960</SizeMb></DiskSettings></DiskSection></VmSpecSection></Vm>`)
	doc := c.get(vm).xml
	c.Expect(doc.Str("Description")).To(Equal("marked"))
	c.Expect(doc.At("VirtualHardwareSection", "ExtraConfig").Attr("value")).To(Equal("abc"))
	c.Expect(doc.Str("VmSpecSection", "DiskSection", "DiskSettings", "SizeMb")).To(Equal("40960"))

	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.Expect(c.state("node-1").PoweredOn).To(BeTrue())
	c.Expect(c.get(vapp).xml.Attr("status")).To(Equal("10"), "one on, one off: mixed")

	c.refused(http.MethodDelete, vm, "", http.StatusBadRequest, "BAD_REQUEST")
	c.refused(http.MethodDelete, vapp, "", http.StatusBadRequest, "BAD_REQUEST")
	c.ok(http.MethodPost, vm+"/power/action/powerOff", "")
	c.refused(http.MethodDelete, vm, "", http.StatusBadRequest, "BAD_REQUEST")
	c.ok(http.MethodPost, vm+"/action/undeploy",
		`<UndeployVAppParams `+xmlns+`><UndeployPowerAction>powerOff</UndeployPowerAction></UndeployVAppParams>`)
	c.ok(http.MethodDelete, vm, "")
	c.Expect(c.refused(http.MethodGet, vm, "", http.StatusForbidden, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")).
		To(ContainSubstring("[VAPP_VM_VIEW] for " + node.ID))
	c.Expect(c.refused(http.MethodDelete, vapp, "", http.StatusBadRequest,
		"BAD_REQUEST")).To(ContainSubstring("Stop the vApp and try again"))
	c.ok(http.MethodPost, vapp+"/action/undeploy", "")
	c.ok(http.MethodDelete, vapp, "")

	state := c.sim.State()
	c.Expect(state.VApps).To(BeEmpty())
	c.Expect(state.VMs).To(BeEmpty())
	c.Expect(c.sim.Unhandled()).To(BeEmpty())
}

func TestAVAppIsDeletedWithItsLastVM(t *testing.T) {
	assume := vcdsim.DefaultAssumptions()
	assume.VAppStaysDeployed = false
	c := start(t, func(cfg *vcdsim.Config) { cfg.Assumptions = &assume })
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.ok(http.MethodPost, vm+"/action/undeploy", "")
	c.ok(http.MethodDelete, vapp, "")
}

func TestPowerStateOfAVApp(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	status := func() string { return c.get(vapp).xml.Attr("status") }
	c.ok(http.MethodPost, vapp+"/power/action/powerOn", "")
	c.Expect(status()).To(Equal("4"), "an empty vApp can be started")
	vm := c.vm(vapp, "node")
	c.Expect(status()).To(Equal("10"), "the vApp is on, the VM in it is off")
	c.refused(http.MethodDelete, vapp, "", http.StatusBadRequest, "BAD_REQUEST")
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.Expect(status()).To(Equal("4"))
	c.ok(http.MethodPost, vm+"/power/action/powerOff", "")
	c.Expect(status()).To(Equal("8"))
	c.ok(http.MethodPost, vapp+"/action/undeploy", "")
	c.Expect(status()).To(Equal("8"))
	c.ok(http.MethodDelete, vm, "")
	c.Expect(status()).To(Equal("1"))
}

func TestRefusals(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	c.vm(vapp, "taken")
	compose := c.vdc() + "/action/composeVApp"
	recomp := vapp + "/action/recomposeVApp"
	noVM := `<SourcedItem><Source href="/api/vAppTemplate/vappTemplate-` + c.model().Catalogs[0].Templates[1].ID + `"/></SourcedItem>`
	unknown := "11111111-2222-3333-4444-555555555555"
	for _, tc := range []struct {
		name, path, body string
		status           int
		code, message    string
	}{
		{
			name:    "a second vApp with the same name",
			path:    compose,
			body:    c.compose("cluster", ""),
			status:  400,
			code:    "DUPLICATE_NAME",
			message: "cluster already exists",
		},
		{
			name:    "a second VM with the same name",
			path:    recomp,
			body:    recompose(c.item("taken", nic("POOL", ""), "")),
			status:  400,
			code:    "DUPLICATE_NAME",
			message: "taken already exists",
		},
		{
			name:    "two VMs with one name in one request",
			path:    recomp,
			body:    recompose(c.item("a", "", ""), c.item("a", "", "")),
			status:  400,
			code:    "DUPLICATE_NAME",
			message: "a already exists",
		},
		{
			name:    "a nonexistent template",
			path:    recomp,
			body:    recompose(`<SourcedItem><Source href="/api/vAppTemplate/vm-` + unknown + `"/></SourcedItem>`),
			status:  403,
			code:    "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			message: unknown,
		},
		{name: "a template without VMs", path: recomp, body: recompose(noVM), status: 400, code: "BAD_REQUEST", message: "does not contain any VMs"},
		{
			name: "an unknown network",
			path: recomp,
			body: recompose(c.item("b",
				`<NetworkConnectionSection><NetworkConnection network="nope"><IpAddressAllocationMode>POOL</IpAddressAllocationMode></NetworkConnection></NetworkConnectionSection>`, "")),
			status:  400,
			code:    "BAD_REQUEST",
			message: `network "nope" does not exist`,
		},
		{
			name:    "an unknown address mode",
			path:    recomp,
			body:    recompose(c.item("b", nic("MAGIC", ""), "")),
			status:  400,
			code:    "BAD_REQUEST",
			message: "Unknown IP Addressing Mode",
		},
		{
			name:    "an address outside the subnet",
			path:    recomp,
			body:    recompose(c.item("b", nic("MANUAL", "10.0.0.1"), "")),
			status:  400,
			code:    "BAD_REQUEST",
			message: `"10.0.0.1" is invalid`,
		},
		{
			name:    "the gateway's address",
			path:    recomp,
			body:    recompose(c.item("b", nic("MANUAL", "192.168.100.1"), "")),
			status:  400,
			code:    "BAD_REQUEST",
			message: "is invalid",
		},
		{
			name:    "an address in use",
			path:    recomp,
			body:    recompose(c.item("b", nic("MANUAL", "192.168.100.10"), "")),
			status:  400,
			code:    "BAD_REQUEST",
			message: "already in use",
		},
		{
			name:    "an unknown storage profile",
			path:    recomp,
			body:    recompose(c.item("b", "", `<StorageProfile href="/api/vdcStorageProfile/`+unknown+`"/>`)),
			status:  403,
			code:    "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			message: unknown,
		},
		{
			name:    "an unknown policy",
			path:    recomp,
			body:    recompose(c.item("b", "", `<ComputePolicy><VmSizingPolicy href="`+unknown+`"/></ComputePolicy>`)),
			status:  400,
			code:    "BAD_REQUEST",
			message: "sizing policy",
		},
		{
			name: "an unknown network in compose",
			path: compose,
			body: `<ComposeVAppParams ` + xmlns +
				` name="x"><InstantiationParams><NetworkConfigSection><NetworkConfig networkName="n"><Configuration><ParentNetwork href="/api/network/` + unknown + `"/><FenceMode>bridged</FenceMode></Configuration></NetworkConfig></NetworkConfigSection></InstantiationParams></ComposeVAppParams>`,
			status:  403,
			code:    "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			message: unknown,
		},
		{name: "a body that is not XML", path: compose, body: "nonsense", status: 400, code: "BAD_REQUEST", message: "JAXB"},
		{name: "a vApp without a name", path: compose, body: `<ComposeVAppParams/>`, status: 400, code: "BAD_REQUEST", message: "name"},
		{
			name:    "powering off a powered-off VM",
			path:    "/api/vApp/vm-" + c.state("taken").ID + "/power/action/powerOff",
			status:  400,
			code:    "BAD_REQUEST",
			message: "is not powered on",
		},
		{name: "undeploying an undeployed vApp", path: vapp + "/action/undeploy", status: 400, code: "BAD_REQUEST", message: "is not running"},
		{
			name:    "a nonexistent vApp",
			path:    "/api/vApp/vapp-" + unknown + "/action/recomposeVApp",
			status:  403,
			code:    "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			message: "VAPP_VIEW",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c.WithT = NewWithT(t)
			c.Expect(c.refused(http.MethodPost, tc.path, tc.body, tc.status, tc.code)).To(ContainSubstring(tc.message))
		})
	}
	c.WithT = NewWithT(t)
	c.Expect(c.sim.State().VMs).To(HaveLen(1), "a rejection changes nothing")
	c.Expect(c.sim.State().VApps).To(HaveLen(1))
}

func TestBusyEntities(t *testing.T) {
	c := start(t, manual)
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")

	a := c.call(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item("second", nic("POOL", ""), "")))
	c.Expect(a.status).To(Equal(http.StatusAccepted))
	text := c.refused(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item("third", "", "")), 400,
		"BUSY_ENTITY")
	c.Expect(text).To(ContainSubstring("VDC_RECOMPOSE_VAPP(com.vmware.vcloud.entity.task:"))
	c.Expect(c.refused(http.MethodPost, vm+"/power/action/powerOn", "", 400,
		"BUSY_ENTITY")).To(ContainSubstring("Unable to perform this action"))
	c.Expect(c.get(vapp).xml.At("Tasks", "Task").Attr("operationName")).To(Equal("vdcRecomposeVapp"))
	c.Expect(c.state("second").Status).To(Equal(vcdsim.Unresolved))
	c.Expect(c.records("type=vApp&filter=isBusy==true")).To(HaveLen(1))
	c.advance(10 * time.Second)
	running := c.get(a.xml.Attr("href")).xml
	c.Expect(running.Attr("status")).To(Equal("running"))
	c.Expect(running.Str("Progress")).To(MatchRegexp(`^[1-9][0-9]$`))

	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().BusyTextTenant = false })
	c.Expect(c.refused(http.MethodDelete, vapp, "", 400,
		"BUSY_ENTITY")).To(ContainSubstring("The entity Ref: com.vmware.vcloud.entity.vapp:"))

	c.Expect(c.finish(a.xml).Attr("status")).To(Equal("success"))
	c.Expect(c.get(vapp).xml.At("Tasks")).To(BeNil())
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
}

func TestAFailedTaskLeavesPartialResults(t *testing.T) {
	c := start(t)
	c.sim.Faults().Add(vcdsim.Fault{Operation: "vdcComposeVapp", Count: 1, FailTask: true, Message: "no host"})
	a := c.call(http.MethodPost, c.vdc()+"/action/composeVApp", c.compose("half", ""))
	task := c.finish(a.xml.At("Tasks", "Task"))

	c.Expect(task.Attr("status")).To(Equal("error"))
	c.Expect(task.At("Error").Attr("message")).To(HaveSuffix("no host"))
	c.Expect(c.get(a.xml.Attr("href")).xml.Attr("status")).To(Equal("0"))
	c.ok(http.MethodDelete, a.xml.Attr("href"), "")
}

func TestAnExhaustedPool(t *testing.T) {
	c := start(t)
	c.sim.Edit(func(e *vcdsim.Editor) {
		pool := &e.Model.Orgs[1].VDCs[0].Networks[0].StaticPool[0]
		pool.To = pool.From
	})
	vapp := c.vapp("cluster")
	first := c.vm(vapp, "first")
	a := c.call(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item("second", nic("POOL", ""), "")))
	task := c.finish(a.xml)

	c.Expect(task.Attr("status")).To(Equal("error"))
	c.Expect(task.At("Error").Attr("message")).To(ContainSubstring("There are insufficient IP addresses"))
	c.Expect(c.state("second").Status).To(Equal(vcdsim.Unresolved))

	c.ok(http.MethodDelete, "/api/vApp/vm-"+c.state("second").ID, "")
	c.ok(http.MethodDelete, first, "")
	c.vm(vapp, "third")
	c.Expect(c.state("third").NICs[0].Address).To(Equal("192.168.100.10"), "a deleted VM releases its address")
}

func TestACanceledRecompose(t *testing.T) {
	c := start(t, manual)
	vapp := c.vapp("cluster")
	a := c.call(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item("node", nic("POOL", ""), "")))
	c.Expect(c.call(http.MethodPost, a.xml.Attr("href")+"/action/cancel", "").status).To(Equal(http.StatusNoContent))

	c.Expect(c.get(a.xml.Attr("href")).xml.Attr("status")).To(Equal("canceled"))
	c.Expect(c.sim.State().VMs).To(BeEmpty())
	c.advance(time.Hour)
	c.Expect(c.sim.State().VMs).To(BeEmpty())
}

func TestLeases(t *testing.T) {
	c := start(t, manual, func(cfg *vcdsim.Config) {
		cfg.Model.Orgs[1].RuntimeLease = vcdsim.Duration(24 * time.Hour)
		cfg.Model.Orgs[1].StorageLease = vcdsim.Duration(48 * time.Hour)
	})
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.Expect(c.records("type=vm&filter=name==node")[0].Attr("autoUndeployDate")).NotTo(BeEmpty())

	c.advance(23 * time.Hour)
	c.ok(http.MethodPut, vapp+"/leaseSettingsSection/",
		`<LeaseSettingsSection `+xmlns+
			`><ovf:Info/><DeploymentLeaseInSeconds>0</DeploymentLeaseInSeconds><StorageLeaseInSeconds>0</StorageLeaseInSeconds></LeaseSettingsSection>`)
	c.Expect(c.get(vapp+"/leaseSettingsSection").xml.Str("DeploymentLeaseInSeconds")).To(Equal("86400"),
		"the organization limits it")
	c.advance(23 * time.Hour)
	c.Expect(c.state("node").PoweredOn).To(BeTrue(), "the lease was renewed")
	c.advance(2 * time.Hour)
	c.Expect(c.state("node").PoweredOn).To(BeFalse(), "the runtime lease ended")
	c.advance(49 * time.Hour)
	c.Expect(c.sim.State().VApps).To(BeEmpty(), "the storage lease ended")
}

func TestLeasesNeverExpireByDefault(t *testing.T) {
	c := start(t, manual)
	vapp := c.vapp("cluster")
	c.ok(http.MethodPost, c.vm(vapp, "node")+"/power/action/powerOn", "")
	c.advance(2000 * time.Hour)
	c.Expect(c.state("node").PoweredOn).To(BeTrue())
	c.Expect(c.records("type=vm&filter=name==node")[0].Attr("autoUndeployDate")).To(BeEmpty())
}

func TestNetworksOfAVApp(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	path := vapp + "/networkConfigSection/"
	put := func(which ...int) string {
		return `<NetworkConfigSection ` + xmlns + `>` + c.networks(which...)[len(`<NetworkConfigSection>`):]
	}
	c.ok(http.MethodPut, path, put(0, 1))
	c.Expect(c.get(path).xml.All("NetworkConfig")).To(HaveLen(2))
	vm := c.vm(vapp, "node")
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.refused(http.MethodPut, path, put(0), 409, "CONFLICT")

	c.ok(http.MethodPost, vapp+"/action/undeploy", "")
	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().UsedNetworkStays = true })
	c.Expect(c.refused(http.MethodPut, path, put(1), 400, "BAD_REQUEST")).To(ContainSubstring("in use by VM"))
	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().UsedNetworkStays = false })
	c.ok(http.MethodPut, path, put(1))
	c.Expect(c.state("node").NICs[0]).To(And(HaveField("Network", "none"), HaveField("Mode", "NONE"),
		HaveField("Address", ""), HaveField("Connected", false)))
	c.Expect(c.get(vm).xml.At("NetworkConnectionSection", "NetworkConnection").Attr("network")).To(Equal("none"))
}

func TestDisks(t *testing.T) {
	c := start(t)
	vm := c.vm(c.vapp("cluster"), "node")
	disk := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+
			`><Disk name="data" sizeMb="1024" busSubType="VirtualSCSI"><Description>d</Description></Disk></DiskCreateParams>`).xml.Attr("href")
	param := `<DiskAttachOrDetachParams ` + xmlns + `><Disk href="` + disk + `"/></DiskAttachOrDetachParams>`

	c.ok(http.MethodPost, vm+"/disk/action/attach", param)
	c.Expect(c.get(disk + "/attachedVms").xml.At("VmReference").Attr("name")).To(Equal("node"))
	c.Expect(c.records("type=disk&filter=isAttached==true")).To(HaveLen(1))
	c.Expect(c.get(vm).xml.At("VmSpecSection", "DiskSection").All("DiskSettings")).To(HaveLen(2))
	c.refused(http.MethodPost, vm+"/disk/action/attach", param, 400, "BAD_REQUEST")
	c.refused(http.MethodDelete, disk, "", 400, "BAD_REQUEST")
	c.Expect(c.refused(http.MethodDelete, vm, "", 400,
		"BAD_REQUEST")).To(ContainSubstring(`independent disk "data" is attached`))

	c.ok(http.MethodPost, vm+"/disk/action/detach", param)
	c.ok(http.MethodDelete, vm, "")
	c.Expect(c.sim.State().Disks).To(HaveLen(1))
	c.ok(http.MethodDelete, disk, "")
	c.Expect(c.sim.State().Disks).To(BeEmpty())
}

func TestAChangeWhoseTaskFailsChangesNothing(t *testing.T) {
	c := start(t, manual)
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")
	c.vm(vapp, "other")
	before := c.state("node")
	task := c.call(http.MethodPost, vm+"/action/reconfigureVm",
		`<Vm `+xmlns+` name="renamed">`+nic("MANUAL", "192.168.100.77")+`</Vm>`).xml
	c.Expect(task.Name).To(Equal("Task"))
	c.sim.Edit(func(e *vcdsim.Editor) { // in the meantime another VM gets the address
		other := e.VM("other")
		other.NICs[0].Address = "192.168.100.77"
		other.NICs[0].Mode = "MANUAL"
	})
	c.Expect(c.finish(task).Attr("status")).To(Equal("error"))
	after := c.state("node")
	c.Expect(after.NICs).To(Equal(before.NICs))
}
