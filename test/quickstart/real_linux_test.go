// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

// TestAClusterOfRealNodes creates a cluster, connects to a Service of type LoadBalancer, reboots the worker, deletes
// the cluster, and checks that no orphaned resources remain.
func TestAClusterOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newRealCluster(t)
	s.run("user data is removed from guestinfo", (*realCluster).testUserDataIsRemoved)
	s.run("a node keeps its identity after a reboot", (*realCluster).testReboot)
	s.deleteCluster()
}

func (s *realCluster) testUserDataIsRemoved() {
	vms := s.q.site.Simulator.State().VMs
	s.Expect(vms).To(HaveLen(2))
	for _, vm := range vms {
		for _, key := range []string{"guestinfo.userdata", "guestinfo.vendordata"} {
			seen, _ := s.tryInVM(vm.Name, "vmware-rpctool", "info-get "+key) // a missing key is an error
			s.Expect(seen).To(Or(Equal("---"), Equal("No value found"), BeEmpty()), "%s of %s", key, vm.Name)
			s.Expect(vm.ExtraConfig[key]).To(Or(Equal("---"), BeEmpty()), "%s of %s", key, vm.Name)
		}
		metadata := s.inVM(vm.Name, "vmware-rpctool", "info-get guestinfo.metadata")
		encoded := vm.ExtraConfig["guestinfo.metadata"]
		s.Expect(metadata).To(Equal(encoded))
		decoded, err := base64.StdEncoding.DecodeString(metadata)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(string(decoded)).NotTo(ContainSubstring("BEGIN"), "metadata contains no private key")
	}
}

func (s *realCluster) testReboot() {
	name := s.worker()
	before := s.node(name)
	instance := s.inVM(name, "cat", "/var/lib/cloud/data/instance-id")
	joined := s.inVM(name, "stat", "--format=%Y", "/etc/kubernetes/kubelet.conf")
	boots := s.boots(name)
	started := time.Now()
	_, _ = s.tryInVM(name, "systemctl", "reboot") // the reboot may close the connection

	s.Eventually(func() int { return s.boots(name) }, nodeWithin, pollTest).Should(Equal(boots + 1))
	s.Eventually(func() bool { return ready(s.node(name), started) }, nodeWithin, pollTest).Should(BeTrue())
	s.t.Logf("Ready %s after reboot", time.Since(started).Round(time.Second))
	after := s.node(name)
	s.Expect(after.UID).To(Equal(before.UID))
	s.Expect(after.Status.Addresses).To(Equal(before.Status.Addresses))
	s.Expect(after.Spec.ProviderID).To(Equal(before.Spec.ProviderID))
	s.Expect(s.inVM(name, "cat", "/var/lib/cloud/data/instance-id")).To(Equal(instance))
	s.Expect(s.inVM(name, "stat", "--format=%Y", "/etc/kubernetes/kubelet.conf")).To(Equal(joined), "kubeadm ran once")
	s.Eventually(func() error { return s.q.fetch(s.t.Context(), s.q.website) }, nodeWithin, pollTest).Should(Succeed())
	s.Expect(s.worker()).To(Equal(name))
}

// boots returns the number of boots of a VM, according to its console log.
func (s *realCluster) boots(vm string) int {
	file, err := hypervisor.ConsoleFile(bootedDir, vm)
	s.Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(file)
	s.Expect(err).NotTo(HaveOccurred())
	return strings.Count(string(text), "Welcome to")
}
