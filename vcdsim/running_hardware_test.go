// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// spec returns the body that changes the VmSpecSection of a VM.
func spec(content string) string {
	return `<Vm ` + xmlns + ` name="node"><VmSpecSection Modified="true">` + content + `</VmSpecSection></Vm>`
}

func specMemory(mib string) string {
	return `<MemoryResourceMb><Configured>` + mib + `</Configured></MemoryResourceMb>`
}

// runningNode powers on a VM with two CPUs on one socket and 4096 MiB, and returns its path.
func (c *client) runningNode(cpuHotAdd, memoryHotAdd bool) string {
	vm := c.node("node")
	c.sim.Edit(func(e *vcdsim.Editor) {
		v := e.VM("node")
		v.CPUs = 2
		v.CoresPerSocket = 2
		v.MemoryMiB = 4096
		v.HardwareVersion = "vmx-14"
		v.CPUHotAdd = cpuHotAdd
		v.MemoryHotAdd = memoryHotAdd
	})
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	return vm
}

// hardwareChanges are changes of the hardware of a running VM.
var hardwareChanges = []struct {
	name         string
	cpus, memory bool // whether CPUs or memory can be added
	change       string
	refused      bool
}{
	{"CPUs that can be added", true, false, spec(`<NumCpus>4</NumCpus>`), false},
	{"CPUs that cannot be added", false, true, spec(`<NumCpus>4</NumCpus>`), true},
	{"fewer CPUs", true, true, spec(`<NumCpus>1</NumCpus>`), true},
	{"memory that can be added", false, true, spec(specMemory("8192")), false},
	{"memory that cannot be added", true, false, spec(specMemory("8192")), true},
	{"less memory", true, true, spec(specMemory("1024")), true},
	{"another operating system", true, true, spec(`<OsType>debian10_64Guest</OsType>`), true},
	{"newer hardware", true, true, spec(`<HardwareVersion>vmx-19</HardwareVersion>`), true},
	{"the same hardware", false, false, spec(`<NumCpus>2</NumCpus><NumCoresPerSocket>2</NumCoresPerSocket>` + specMemory("4096")), false},
}

func TestARunningVMKeepsItsHardware(t *testing.T) {
	for _, tt := range hardwareChanges {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t)
			vm := c.runningNode(tt.cpus, tt.memory)

			if tt.refused {
				before := c.state("node")
				c.refused(http.MethodPost, vm+"/action/reconfigureVm", tt.change, 400, "BAD_REQUEST")
				c.Expect(c.state("node")).To(Equal(before))
				c.ok(http.MethodPost, vm+"/power/action/powerOff", "")
			}
			c.ok(http.MethodPost, vm+"/action/reconfigureVm", tt.change)
		})
	}
}

func TestHotAddOfARunningVMCannotChange(t *testing.T) {
	c := start(t)
	vm := c.runningNode(false, false)
	enable := `<VmCapabilities ` + xmlns + `><MemoryHotAddEnabled>true</MemoryHotAddEnabled></VmCapabilities>`

	c.refused(http.MethodPut, vm+"/vmCapabilities", enable, 400, "BAD_REQUEST")
	c.ok(http.MethodPost, vm+"/power/action/powerOff", "")
	c.ok(http.MethodPut, vm+"/vmCapabilities", enable)
}

func TestASuspendedVMKeepsItsHardware(t *testing.T) {
	c := start(t)
	vm := c.runningNode(true, true)
	c.ok(http.MethodPost, vm+"/power/action/suspend", "")

	c.refused(http.MethodPost, vm+"/action/reconfigureVm", spec(`<NumCpus>4</NumCpus>`), 400, "BAD_REQUEST")
}

func TestARunningVMKeepsItsCoresPerSocket(t *testing.T) {
	assume := vcdsim.DefaultAssumptions()
	assume.RunningVMKeepsHardware = false
	for name, configure := range map[string]func(*vcdsim.Config){
		"by default":                     func(*vcdsim.Config) {},
		"whatever the simulator assumes": func(cfg *vcdsim.Config) { cfg.Assumptions = &assume },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, configure)
			vm := c.runningNode(true, true)
			change := spec(`<NumCpus>4</NumCpus><NumCoresPerSocket>1</NumCoresPerSocket>`)

			c.Expect(c.refused(http.MethodPost, vm+"/action/reconfigureVm", change, 400, "BAD_REQUEST")).To(HaveSuffix(
				`The number of cores per socket can only be changed for the virtual machine "node" when powered off.`))
			c.ok(http.MethodPost, vm+"/power/action/powerOff", "")
			c.ok(http.MethodPost, vm+"/action/reconfigureVm", change)
		})
	}
}

func TestTheHardwareOfARunningVMChangesIfVCDAllowsIt(t *testing.T) {
	assume := vcdsim.DefaultAssumptions()
	assume.RunningVMKeepsHardware = false
	for _, tt := range hardwareChanges {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, func(cfg *vcdsim.Config) { cfg.Assumptions = &assume })
			vm := c.runningNode(tt.cpus, tt.memory)

			c.ok(http.MethodPost, vm+"/action/reconfigureVm", tt.change)
		})
	}
}
