// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A fakeGuest boots VMs that have a key in their extra configuration.
type fakeGuest struct {
	mu     sync.Mutex
	booted []vcdsim.GuestVM
	off    []string
	gone   []string
}

func (f *fakeGuest) PowerOn(_ context.Context, vm vcdsim.GuestVM) (vcdsim.GuestReport, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if vm.ExtraConfig["guestinfo.userdata"] == "" {
		return vcdsim.GuestReport{}, errors.New("no userdata")
	}
	f.booted = append(f.booted, vm)
	return vcdsim.GuestReport{
		Addresses:   map[string]string{vm.NICs[0].MAC: vm.NICs[0].Address.String()},
		ExtraConfig: map[string]string{"guestinfo.userdata": "---"},
		Hostname:    "node",
	}, nil
}

func (f *fakeGuest) PowerOff(_ context.Context, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off = append(f.off, id)
}

func (f *fakeGuest) Delete(_ context.Context, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = append(f.gone, id)
}

func (f *fakeGuest) counts() [3]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return [3]int{len(f.booted), len(f.off), len(f.gone)}
}

const userdata = `<Vm ` + xmlns + `><ovf:VirtualHardwareSection><vmw:ExtraConfig vmw:key="guestinfo.userdata" vmw:value="secret"/></ovf:VirtualHardwareSection></Vm>`

func TestAGuestBoots(t *testing.T) {
	guest := &fakeGuest{}
	c := start(t, manual, func(cfg *vcdsim.Config) { cfg.Guest = guest })
	vapp := c.vapp("cluster")
	c.ok(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item("node", nic("DHCP", ""), "")))
	vm := "/api/vApp/vm-" + c.state("node").ID
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", userdata)
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.Expect(c.state("node").NICs[0].Address).To(BeEmpty(), "DHCP only assigns an address to a running guest")
	c.Expect(guest.counts()).To(Equal([3]int{0, 0, 0}))

	c.advance(45 * time.Second)
	c.Eventually(func() bool { return c.state("node").Boot.Up }).Should(BeTrue())
	node := c.state("node")
	c.Expect(node.NICs[0].Address).To(Equal("192.168.100.150"))
	c.Expect(node.ExtraConfig).To(HaveKeyWithValue("guestinfo.userdata", "---"))
	c.Expect(guest.booted[0].KubernetesVersion).To(Equal("v1.36.3"))
	c.Expect(guest.booted[0].NICs[0].Prefix.String()).To(Equal("192.168.100.0/24"))
	c.refused(http.MethodPost, vm+"/action/reconfigureVm", userdata, 400, "BUSY_ENTITY")
	c.advance(5 * time.Second)

	c.ok(http.MethodPost, vm+"/action/undeploy", "")
	c.ok(http.MethodDelete, vm, "")
	c.Eventually(guest.counts).Should(Equal([3]int{1, 1, 1}))
}

func TestAGuestThatDoesNotBootReportsTheCause(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) { cfg.Guest = &fakeGuest{} })
	vm := c.vm(c.vapp("cluster"), "node")
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")

	c.Eventually(func() string { return c.state("node").Boot.Failure }).Should(Equal("no userdata"))
	c.Expect(c.state("node").PoweredOn).To(BeTrue(), "VCD shows a running VM")
	c.Expect(string(c.get("/_sim/state").body)).To(ContainSubstring("no userdata"))
}

func TestAVMPoweredOffInTimeNeverBoots(t *testing.T) {
	guest := &fakeGuest{}
	c := start(t, manual, func(cfg *vcdsim.Config) { cfg.Guest = guest })
	vm := c.vm(c.vapp("cluster"), "node")
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", userdata)
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.sim.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM("node")) })
	c.advance(time.Hour)

	c.Eventually(guest.counts).Should(Equal([3]int{0, 1, 0}))
}
