// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// grown returns the body that expands the first disk of a VM.
func grown() string {
	return `<Vm ` + xmlns + `><VmSpecSection Modified="true"><ovf:Info/><DiskSection><DiskSettings>` +
		`<DiskId>2000</DiskId><SizeMb>30720</SizeMb><UnitNumber>0</UnitNumber><BusNumber>0</BusNumber>` +
		`</DiskSettings></DiskSection></VmSpecSection></Vm>`
}

func TestDiskOfALinkedCloneGrowsAfterItsConsolidation(t *testing.T) {
	c := start(t)
	vm := c.vm(c.vapp("clones"), "clone")
	c.Expect(c.records("type=orgVdc")[0].Attr("isFastProvisioned")).To(Equal("true"))

	c.Expect(c.refused(http.MethodPost, vm+"/action/reconfigureVm", grown(), 400, "BAD_REQUEST")).To(
		ContainSubstring("cannot be modified while the virtual machine has snapshots"))
	task := c.ok(http.MethodPost, vm+"/action/consolidate", "").xml
	c.Expect(task.Attr("operationName")).To(Equal("vappConsolidateVm"))
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", grown())
	c.Expect(c.state("clone").Disks[0].SizeMiB).To(Equal(int64(30720)))
	c.ok(http.MethodPost, vm+"/action/consolidate", "")

	c.ok(http.MethodPost, vm+"/action/createSnapshot", "")
	bigger := strings.Replace(grown(), "30720", "40960", 1)
	c.Expect(c.refused(http.MethodPost, vm+"/action/reconfigureVm", bigger, 400, "BAD_REQUEST")).To(
		ContainSubstring("has snapshots"))
}

func TestConsolidationRequiresItsRight(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) {
		cfg.Model = vcdsim.K8sTenant()
		cfg.Model.Orgs[1].Users[1].Role = "vApp Author"
	})
	vm := c.vm(c.vapp("clones"), "clone")

	c.Expect(c.refused(http.MethodPost, vm+"/action/consolidate", "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")).To(
		ContainSubstring("vApp: VM Migrate, Force Undeploy, Relocate, Consolidate"))
	c.Expect(string(c.get(vm).body)).NotTo(ContainSubstring("action/consolidate"))
}

func TestFullClonesGrowAtOnce(t *testing.T) {
	assume := vcdsim.DefaultAssumptions()
	assume.LinkedClonesKeepSize = false
	for name, change := range map[string]func(*vcdsim.Config){
		"in a VDC without fast provisioning": func(cfg *vcdsim.Config) {
			cfg.Model = vcdsim.K8sTenant()
			cfg.Model.Orgs[1].VDCs[0].FullClones = true
		},
		"if VCD allows it": func(cfg *vcdsim.Config) { cfg.Assumptions = &assume },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, change)
			vm := c.vm(c.vapp("clones"), "clone")
			c.ok(http.MethodPost, vm+"/action/reconfigureVm", grown())
		})
	}
}
