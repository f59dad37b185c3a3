// SPDX-License-Identifier: Apache-2.0

package hypervisor_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

const bootWithin = 2 * time.Minute

// data returns the guestinfo of a VM with the address that VCD assigned.
func (s *site) data(vm vcdsim.VM) map[string]string {
	nic := vm.NICs[0]
	addresses := "dhcp4: true"
	if nic.Mode == "POOL" {
		addresses = fmt.Sprintf("addresses: [%s/24]\n      routes: [{to: 0.0.0.0/0, via: 192.168.100.1}]", nic.Address)
	}
	return map[string]string{
		"metadata": fmt.Sprintf(`instance-id: %s
local-hostname: %s
redact: [userdata]
network:
  version: 2
  ethernets:
    id0:
      match: {macaddress: "%s"}
      set-name: eth0
      %s
`, vm.ID, vm.Name, nic.MAC, addresses),
		"userdata": "#cloud-config\nruncmd:\n- [sh, -c, 'echo ran >> /srv/ran']\n- [vmware-rpctool, info-set guestinfo.done yes]\n",
	}
}

// boot creates a VM and waits until it has booted.
func (s *site) boot(t *testing.T, name, mode string) (vapp, vm string) {
	t.Helper()
	vapp, vm = s.vm(name, mode)
	s.inform(vm, s.data(s.state(name)))
	began := time.Now()
	s.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	s.awaitUp(name)
	t.Logf("up after %s", time.Since(began).Round(100*time.Millisecond))
	return vapp, vm
}

func (s *site) awaitUp(name string) {
	s.Eventually(func(g Gomega) {
		b := s.state(name).Boot
		if b.Failure != "" {
			StopTrying(b.Failure).Now()
		}
		g.Expect(b.Up).To(BeTrue())
	}, bootWithin).Should(Succeed(), func() string { return s.console(name) })
}

// inVM reads a file that the VM wrote.
func (s *site) inVM(name, path string) string {
	data, err := os.ReadFile(filepath.Join(s.dir, "vms", s.state(name).ID, "upper", path))
	if err != nil {
		return ""
	}
	return string(data)
}

// groupsOf returns the control groups of a VM's first process.
func (s *site) groupsOf(name string) []string {
	pid, err := os.ReadFile(filepath.Join(s.dir, "vms", s.state(name).ID, "pid"))
	s.Expect(err).NotTo(HaveOccurred())
	first, err := os.ReadFile(fmt.Sprintf("/proc/%[1]s/task/%[1]s/children", pid))
	s.Expect(err).NotTo(HaveOccurred())
	groups, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(first)), "cgroup"))
	s.Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(groups)), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "0::") && strings.Contains(string(groups), ":pids:") // version 2 is not used in that case
	})
}

func (s *site) console(name string) string {
	data, err := os.ReadFile(filepath.Join(s.dir, "vms", s.state(name).ID, "console.log"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestAVMBootsFromItsGuestinfo(t *testing.T) {
	s := start(t, stateDir(t))
	vapp, vm := s.boot(t, "node", "POOL")
	address := s.state("node").NICs[0].Address
	s.Eventually(func() map[string]string { return s.state("node").ExtraConfig }, bootWithin).Should(And(
		HaveKeyWithValue("guestinfo.userdata", "---"), HaveKeyWithValue("guestinfo.local-ipv4", address),
		HaveKeyWithValue("guestinfo.done", "yes")), func() string { return s.console("node") })
	s.Expect(s.inVM("node", "etc/hostname")).To(Equal("node\n"))
	s.Expect(s.groupsOf("node")).To(HaveEach(ContainSubstring("/vm-"+s.state("node").ID)),
		"systemds that share a hierarchy wait for each other's processes, and kubelets see each other's pods")

	s.ok(http.MethodPost, vm+"/power/action/reboot", "")
	s.awaitUp("node")
	s.Expect(s.inVM("node", "srv/ran")).To(Equal("ran\n"), "cloud-init runs commands once per instance")

	s.ok(http.MethodPost, vm+"/power/action/suspend", "")
	s.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	s.ok(http.MethodPost, vm+"/power/action/reset", "")
	s.awaitUp("node")
	s.ok(http.MethodPost, vm+"/power/action/powerOff", "")
	s.ok(http.MethodPost, vapp+"/action/undeploy", "")
	s.ok(http.MethodDelete, vapp, "")
	s.Eventually(func() []string { return hypervisor.Left(s.dir) }, time.Minute).Should(BeEmpty())
}

func TestDHCPAssignsTheAddressShownByVCD(t *testing.T) {
	s := start(t, stateDir(t))
	s.boot(t, "node", "DHCP")
	s.Eventually(func() string { return s.state("node").NICs[0].Address }, bootWithin).Should(Equal("192.168.100.150"))
}

func TestAGuestReboots(t *testing.T) {
	s := start(t, stateDir(t))
	_, vm := s.vm("node", "POOL")
	data := s.data(s.state("node"))
	data["userdata"] = "#cloud-config\nruncmd:\n- [systemctl, reboot]\n"
	s.inform(vm, data)
	s.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	s.Eventually(func() int { return strings.Count(s.console("node"), "Welcome to") }, bootWithin).Should(Equal(2))
	s.Expect(s.state("node").Status).To(Equal(vcdsim.PoweredOn))
}

func TestAGuestPowersItselfOff(t *testing.T) {
	s := start(t, stateDir(t))
	vapp, vm := s.vm("node", "POOL")
	data := s.data(s.state("node"))
	data["userdata"] = "#cloud-config\nruncmd:\n- [systemctl, poweroff]\n"
	s.inform(vm, data)
	s.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	s.Eventually(func() vcdsim.Status { return s.state("node").Status }, bootWithin).Should(Equal(vcdsim.PoweredOff))

	s.ok(http.MethodPost, vapp+"/action/undeploy", "")
	s.ok(http.MethodDelete, vapp, "")
	s.Eventually(func() []string { return hypervisor.Left(s.dir) }, bootWithin).Should(BeEmpty())
}

func TestAMissingImageIsNamed(t *testing.T) {
	s := start(t, stateDir(t))
	s.sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].Catalogs[0].Templates[0].Name = "other" })
	_, vm := s.vm("node", "POOL")
	s.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	s.Eventually(func() string { return s.state("node").Boot.Failure }).
		Should(ContainSubstring("no image other.json in"))
}
