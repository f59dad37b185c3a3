// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestNewVAppsAreDeployedAndPoweredOnUnlessTheRequestSaysOtherwise(t *testing.T) {
	for _, tt := range []struct {
		attributes string
		status     vcdsim.Status
		deployed   bool
	}{
		{``, vcdsim.PoweredOn, true},
		{`powerOn="true"`, vcdsim.PoweredOn, true},
		{`powerOn="false"`, vcdsim.PoweredOff, true},
		{`powerOn="false" deploy="true"`, vcdsim.PoweredOff, true},
		{`powerOn="false" deploy="false"`, vcdsim.PoweredOff, false},
		{`powerOn="true" deploy="false"`, vcdsim.PoweredOn, true},
	} {
		t.Run(tt.attributes, func(t *testing.T) {
			c := start(t)
			template := c.sim.URL() + "/api/vAppTemplate/vappTemplate-" + c.model().Catalogs[0].Templates[0].ID
			c.ok(http.MethodPost, c.vdc()+"/action/composeVApp", `<ComposeVAppParams `+xmlns+` name="composed" `+tt.attributes+
				`><SourcedItem><Source href="`+c.templateVM()+`" name="composed"/></SourcedItem></ComposeVAppParams>`)
			c.ok(http.MethodPost, c.vdc()+"/action/instantiateVAppTemplate", `<InstantiateVAppTemplateParams `+xmlns+
				` name="instantiated" `+tt.attributes+`><Source href="`+template+`"/></InstantiateVAppTemplateParams>`)
			c.ok(http.MethodPost, c.vdc()+"/action/cloneVApp", `<CloneVAppParams `+xmlns+` name="cloned" `+tt.attributes+
				`><Source href="`+c.sim.URL()+`/api/vApp/vapp-`+c.state("composed").VAppID+`"/></CloneVAppParams>`)

			state := c.sim.State()
			c.Expect(state.VMs).To(HaveLen(3))
			for _, vm := range state.VMs {
				c.Expect(vm.Status).To(Equal(tt.status), vm.VAppName)
				c.Expect(vm.Deployed).To(Equal(tt.deployed), vm.VAppName)
			}
			for _, v := range state.VApps {
				c.Expect(v.Deployed).To(Equal(tt.deployed), v.Name)
				c.Expect(v.Lease.Deployed.IsZero()).To(Equal(!tt.deployed), v.Name)
			}
		})
	}
}

func TestAVAppWithoutVMsIsNotDeployedAtItsCreation(t *testing.T) {
	c := start(t)
	vapp := c.ok(http.MethodPost, c.vdc()+"/action/composeVApp", `<ComposeVAppParams `+xmlns+` name="empty"/>`).xml.Attr("href")

	c.Expect(c.get(vapp).xml.Attr("status")).To(Equal("1"))
	c.ok(http.MethodDelete, vapp, "")
}

func TestARecomposedVAppStartsItsNewVMsOnRequest(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	c.vm(vapp, "off")
	c.Expect(c.state("off").Status).To(Equal(vcdsim.PoweredOff))

	c.ok(http.MethodPost, vapp+"/action/recomposeVApp", `<RecomposeVAppParams `+xmlns+` powerOn="true">`+
		c.item("on", nic("POOL", ""), "")+`</RecomposeVAppParams>`)

	c.Expect(c.state("on").Status).To(Equal(vcdsim.PoweredOn))
	c.Expect(c.state("off").Status).To(Equal(vcdsim.PoweredOff))
}
