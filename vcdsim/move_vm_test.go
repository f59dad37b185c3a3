// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// moved returns the item that moves a VM, with parameters.
func (c *client) moved(vm, more string) string {
	return `<SourcedItem sourceDelete="true"><Source href="` + c.sim.URL() + vm + `"/>` + more + `</SourcedItem>`
}

// vappOf returns the state of a vApp.
func (c *client) vappOf(name string) vcdsim.VApp {
	for _, v := range c.sim.State().VApps {
		if v.Name == name {
			return v
		}
	}
	c.Expect(name).To(Equal("the name of a vApp"))
	return vcdsim.VApp{}
}

func TestAVMMovesToAnotherVApp(t *testing.T) {
	c := start(t)
	from := c.vapp("from")
	to := c.vapp("to")
	vm := c.vm(from, "node")
	disk := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`).xml.Attr("href")
	c.ok(http.MethodPost, vm+"/disk/action/attach",
		`<DiskAttachOrDetachParams `+xmlns+`><Disk href="`+disk+`"/></DiskAttachOrDetachParams>`)
	c.ok(http.MethodPut, vm+"/metadata/key", metadataValue)
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	before := c.state("node")

	c.ok(http.MethodPost, to+"/action/recomposeVApp", recompose(c.moved(vm,
		`<VmGeneralParams><Name>moved</Name></VmGeneralParams>`), c.item("other", nic("POOL", ""), "")))

	after := c.state("moved")
	c.Expect(after.VAppID).To(Equal(c.vappOf("to").ID))
	c.Expect([]any{after.ID, after.Disks, after.NICs, after.Metadata, after.PoweredOn, after.ExtraConfig}).To(Equal(
		[]any{before.ID, before.Disks, before.NICs, before.Metadata, true, before.ExtraConfig}))
	c.Expect(c.get(vm).xml.Attr("name")).To(Equal("moved"))
	c.Expect(c.records("type=vm&filter=containerName==to")).To(HaveLen(2))
	c.Expect(c.records("type=vm&filter=containerName==from")).To(BeEmpty())
	c.Expect(c.get(from).xml.At("Children").All("Vm")).To(BeEmpty())
	c.Expect(c.get(to).xml.At("Children").All("Vm")).To(HaveLen(2))
	c.Expect(c.vappOf("to").Deployed).To(BeTrue())
	c.ok(http.MethodPost, vm+"/action/undeploy", "")
	c.ok(http.MethodPost, vm+"/disk/action/detach",
		`<DiskAttachOrDetachParams `+xmlns+`><Disk href="`+disk+`"/></DiskAttachOrDetachParams>`)
	c.ok(http.MethodDelete, vm, "")
}

func TestAMovedVMConnectsToTheNetworksOfItsNewVApp(t *testing.T) {
	const isolated = ownScope + `<FenceMode>isolated</FenceMode>`
	for name, tt := range map[string]struct {
		networks string // of the new vApp
		params   string
		network  string
		address  string
	}{
		"by their names": {network: "nodes", address: "192.168.100.10"},
		"or to none":     {networks: `<NetworkConfigSection ` + xmlns + `/>`, network: "none"},
		"with another subnet": {
			networks: `<NetworkConfigSection ` + xmlns + `><NetworkConfig networkName="nodes"><Configuration>` + isolated +
				`</Configuration></NetworkConfig></NetworkConfigSection>`,
			network: "nodes",
			address: "192.168.0.10",
		},
		"as requested": {
			params:  `<InstantiationParams>` + nic("MANUAL", "192.168.100.150") + `</InstantiationParams>`,
			network: "nodes",
			address: "192.168.100.150",
		},
		"with its own address": {
			params:  `<InstantiationParams>` + nic("MANUAL", "192.168.100.10") + `</InstantiationParams>`,
			network: "nodes",
			address: "192.168.100.10",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			vm := c.vm(c.vapp("from"), "node")
			to := c.vapp("to")
			if tt.networks != "" {
				c.ok(http.MethodPut, to+"/networkConfigSection", tt.networks)
			}

			c.ok(http.MethodPost, to+"/action/recomposeVApp", recompose(c.moved(vm, tt.params)))

			nic := c.state("node").NICs[0]
			c.Expect([]string{nic.Network, nic.Address}).To(Equal([]string{tt.network, tt.address}))
		})
	}
}

func TestAMovedStandaloneVMLeavesNoVApp(t *testing.T) {
	c := start(t)
	c.ok(http.MethodPost, c.vdc()+"/action/createVm", `<CreateVmParams `+xmlns+` name="vm" powerOn="false"><CreateVm name="vm">`+
		rawVM+`</CreateVm></CreateVmParams>`)

	c.ok(http.MethodPost, c.vapp("to")+"/action/recomposeVApp", recompose(c.moved("/api/vApp/vm-"+c.state("vm").ID, "")))

	c.Expect(c.sim.State().VApps).To(HaveLen(1))
	c.Expect(c.state("vm").VAppID).To(Equal(c.vappOf("to").ID))
}

func TestMovesAreRefused(t *testing.T) {
	c := start(t, withUsers("vApp Author", "other"))
	from := c.vapp("from")
	to := c.vapp("to")
	vm := c.vm(from, "node")
	c.vm(to, "taken")
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	resized := `<InstantiationParams>` + hardware(hardwareItem("3", "5", quantity("64"))) + `</InstantiationParams>`
	for name, tt := range map[string]struct{ path, body, message string }{
		"within a vApp": {path: from + "/action/recomposeVApp", body: recompose(c.moved(vm, "")), message: "already in vApp"},
		"twice":         {path: to + "/action/recomposeVApp", body: recompose(c.moved(vm, ""), c.moved(vm, "")), message: "twice"},
		"with the name of another VM": {
			path:    to + "/action/recomposeVApp",
			body:    recompose(c.moved(vm, `<VmGeneralParams><Name>taken</Name></VmGeneralParams>`)),
			message: "taken already exists",
		},
		"with the name of another new VM": {
			path:    to + "/action/recomposeVApp",
			body:    recompose(c.moved(vm, ""), c.item("node", "", "")),
			message: "node already exists",
		},
		"with other hardware while it runs": {path: to + "/action/recomposeVApp", body: recompose(c.moved(vm, resized)), message: "not powered off"},
		"to a new vApp": {
			path:    c.vdc() + "/action/composeVApp",
			body:    `<ComposeVAppParams ` + xmlns + ` name="new">` + c.moved(vm, "") + `</ComposeVAppParams>`,
			message: "only to an existing vApp",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.WithT = NewWithT(t)
			a := c.call(http.MethodPost, tt.path, tt.body)
			c.Expect(a.status).To(Equal(http.StatusBadRequest), string(a.body))
			c.Expect(a.xml.Attr("message")).To(ContainSubstring(tt.message))
			c.Expect(c.state("node").VAppID).To(Equal(c.vappOf("from").ID))
		})
	}
	other := c.user("other")
	own := other.vapp("own")
	other.refused(http.MethodPost, own+"/action/recomposeVApp", recompose(c.moved(vm, "")), 403, forbiddenCode)
}

func TestAMoveLocksBothVApps(t *testing.T) {
	c := start(t, manual)
	from := c.vapp("from")
	to := c.vapp("to")
	vm := c.vm(from, "node")

	task := c.call(http.MethodPost, to+"/action/recomposeVApp", recompose(c.moved(vm, "")))

	for _, path := range []string{from, to} {
		c.refused(http.MethodPut, path+"/metadata/key", metadataValue, 400, "BUSY_ENTITY")
	}
	c.refused(http.MethodPost, vm+"/power/action/powerOn", "", 400, "BUSY_ENTITY")
	c.Expect(c.state("node").VAppID).To(Equal(c.vappOf("from").ID))
	c.Expect(c.finish(task.xml).Attr("status")).To(Equal("success"))
	c.Expect(c.state("node").VAppID).To(Equal(c.vappOf("to").ID))

	c.call(http.MethodPost, vm+"/power/action/powerOn", "")
	c.refused(http.MethodPost, from+"/action/recomposeVApp", recompose(c.moved(vm, "")), 400, "BUSY_ENTITY")
}
