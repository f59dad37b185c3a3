// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A machine is a guest that records its hosts and power operations.
type machine struct {
	mu    sync.Mutex
	hosts []vcdsim.GuestHost
	disks []vcdsim.GuestDisk
	done  []string
}

func (m *machine) PowerOn(_ context.Context, vm vcdsim.GuestVM) (vcdsim.GuestReport, error) {
	m.mu.Lock()
	m.hosts = append(m.hosts, vm.Host)
	m.disks = vm.Disks
	m.mu.Unlock()
	vm.Host.Report(vcdsim.GuestReport{ExtraConfig: map[string]string{"guestinfo.userdata": "---"}})
	m.did("on")
	return vcdsim.GuestReport{Hostname: "node"}, nil
}

func (m *machine) did(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = append(m.done, what)
}

func (m *machine) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.done...)
}

func (m *machine) PowerOff(context.Context, string) { m.did("off") }
func (m *machine) Delete(context.Context, string)   { m.did("deleted") }
func (m *machine) Shutdown(context.Context, string) { m.did("shut down") }
func (m *machine) Suspend(context.Context, string)  { m.did("suspended") }
func (m *machine) Resume(context.Context, string)   { m.did("resumed") }

func TestAGuestIsShutDownSuspendedAndResumed(t *testing.T) {
	guest := &machine{}
	c := start(t, func(cfg *vcdsim.Config) { cfg.Guest = guest })
	vm := c.vm(c.vapp("cluster"), "node")
	var want []string
	for _, step := range []struct {
		action string
		does   []string
	}{
		{"power/action/powerOn", []string{"on"}},
		{"power/action/suspend", []string{"suspended"}},
		{"power/action/powerOn", []string{"resumed"}},
		{"power/action/reboot", []string{"shut down", "on"}},
		{"power/action/reset", []string{"off", "on"}},
		{"power/action/shutdown", []string{"shut down"}},
		{"power/action/powerOn", []string{"on"}},
		{"power/action/powerOff", []string{"off"}},
	} {
		c.ok(http.MethodPost, vm+"/"+step.action, "")
		want = append(want, step.does...)
		c.Eventually(guest.all).Should(Equal(want), step.action)
		if step.does[len(step.does)-1] == "on" {
			c.Eventually(func() bool { return c.state("node").Boot.Up }).Should(BeTrue())
		}
	}
}

func TestAGuestReportsWhileItRuns(t *testing.T) {
	guest := &machine{}
	c := start(t, func(cfg *vcdsim.Config) { cfg.Guest = guest })
	vm := c.vm(c.vapp("cluster"), "node")
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", userdata)
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.Eventually(func() bool { return c.state("node").Boot.Up }).Should(BeTrue())
	c.Expect(c.state("node").ExtraConfig).To(HaveKeyWithValue("guestinfo.userdata", "---"))

	first := guest.hosts[0]
	first.Report(vcdsim.GuestReport{ExtraConfig: map[string]string{"guestinfo.local-ipv4": "192.168.100.9"}})
	c.Expect(c.state("node").ExtraConfig).To(HaveKeyWithValue("guestinfo.local-ipv4", "192.168.100.9"))
	c.Expect(c.state("node").Boot.Hostname).To(Equal("node"), "it did not change")

	first.PoweredOff()
	c.Expect(c.state("node").Status).To(Equal(vcdsim.PoweredOff))
	c.Expect(c.state("node").Deployed).To(BeTrue())
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.Eventually(func() bool { return c.state("node").Boot.Up }).Should(BeTrue())

	first.Report(vcdsim.GuestReport{ExtraConfig: map[string]string{"guestinfo.local-ipv4": "late"}})
	first.PoweredOff()
	c.Expect(c.state("node").ExtraConfig).NotTo(HaveKeyWithValue("guestinfo.local-ipv4", "late"), "of an earlier boot")
	c.Expect(c.state("node").Status).To(Equal(vcdsim.PoweredOn))
}
