// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCopiesOfAVMKeepItsExtraConfiguration(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	source := c.vm(vapp, "source")
	c.ok(http.MethodPost, source+"/action/reconfigureVm", c.extraConfig("source"))
	from := c.state("source")

	c.ok(http.MethodPost, vapp+"/action/recomposeVApp", recompose(`<SourcedItem><Source href="`+c.sim.URL()+source+
		`"/><VmGeneralParams><Name>copy</Name></VmGeneralParams></SourcedItem>`))
	c.ok(http.MethodPost, c.vdc()+"/action/cloneVApp", `<CloneVAppParams `+xmlns+` name="clone" powerOn="false"><Source href="`+
		c.sim.URL()+vapp+`"/></CloneVAppParams>`)

	vm := c.state("copy")
	c.Expect(vm.ExtraConfig).To(HaveKeyWithValue("guestinfo.x", "y"))
	c.Expect(vm.Disks).To(Equal(from.Disks))
	c.Expect(vm.NICs[0].MAC).NotTo(Equal(from.NICs[0].MAC))
	c.Expect(vm.NICs[0].Address).NotTo(Or(BeEmpty(), Equal(from.NICs[0].Address)))
	clones := c.records("type=vm&filter=containerName==clone;name==copy")
	c.Expect(clones).To(HaveLen(1))
	clone := c.get(clones[0].Attr("href")).xml
	c.Expect(clone.At("VirtualHardwareSection", "ExtraConfig").Attr("value")).To(Equal("y"))
}

func TestCopyingAVMRequiresVisibility(t *testing.T) {
	c := start(t, withUsers("vApp Author", "other"))
	source := c.vm(c.vapp("cluster"), "source")
	other := c.user("other")
	vapp := other.vapp("own")

	other.refused(http.MethodPost, vapp+"/action/recomposeVApp",
		recompose(`<SourcedItem><Source href="`+c.sim.URL()+source+`"/></SourcedItem>`), 403, forbiddenCode)
}
