// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMachineIsCreatedAndDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.cluster("alpha")
	s.ready(c)
	s.g.Eventually(func() (string, error) { return c.Spec.ControlPlaneEndpoint.String(), s.get(c) },
		timeout).Should(Equal(vip + ":6443"))
	s.g.Expect(c.Spec.InfraID).NotTo(BeEmpty())
	s.g.Expect(s.get(&corev1.Secret{ObjectMeta: s.meta("alpha-kube-vip")})).To(Succeed())

	m := s.machine("alpha", "alpha-0", func(m *infrav1.VCDMachine) {
		m.Spec.PlacementPolicy = "rack-a"
		m.Spec.StorageProfile = "fast"
		m.Spec.Networks = []infrav1.NetworkSpec{
			{AddressSource: infrav1.AddressStaticPool},
			{Name: "storage", AddressSource: infrav1.AddressStaticPool},
		}
	})
	s.ready(m)

	s.g.Expect(s.State().VMs).To(HaveLen(1))
	vm := s.State().VMs[0]
	s.g.Expect(m.Spec.ProviderID).To(Equal("vmware-cloud-director://urn:vcloud:vm:" + vm.ID))
	s.g.Expect(vm.Name).To(Equal("alpha-0"))
	s.g.Expect(vm.PoweredOn).To(BeTrue())
	s.g.Expect(vm.NICs).To(HaveLen(2))
	s.g.Expect(vm.ExtraConfig).To(HaveKeyWithValue("disk.enableUUID", "1"))
	s.g.Expect(vm.ExtraConfig).To(HaveKey("guestinfo.userdata"))
	s.g.Expect(m.Status.Addresses).To(ContainElement(clusterv1.MachineAddress{
		Type:    clusterv1.MachineHostName,
		Address: "alpha-0",
	}))
	for _, nic := range vm.NICs {
		s.g.Expect(m.Status.Addresses).To(ContainElement(clusterv1.MachineAddress{
			Type:    clusterv1.MachineInternalIP,
			Address: nic.Address,
		}))
	}
	s.g.Expect(*m.Status.Initialization.Provisioned).To(BeTrue())
	s.staysIdle(c, m)

	s.deleteMachine("alpha-0")
	s.deleteCluster("alpha")
	s.empty()
	s.g.Expect(s.errorsLogged()).To(BeEmpty(), "an uneventful lifecycle logs no errors")
}

func TestAddressesByDHCP(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *vcdsim.Config) { c.Guest = leases{} })
	s.cluster("dhcp")
	m := s.machine("dhcp", "dhcp-0", func(m *infrav1.VCDMachine) {
		m.Spec.Networks = []infrav1.NetworkSpec{{AddressSource: infrav1.AddressDHCP}}
	})

	s.ready(m)

	s.g.Expect(m.Status.NICs).To(HaveLen(1))
	s.g.Expect(m.Status.NICs[0].Address).To(Equal(leasedAddress))
	s.deleteMachine("dhcp-0")
	s.deleteCluster("dhcp")
	s.empty()
}

func TestExternalControlPlaneEndpoint(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.cluster("external", func(c *infrav1.VCDCluster) {
		c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointExternal}
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "api.example.com", Port: 443}
	})

	s.ready(c)

	s.g.Expect(c.Spec.ControlPlaneEndpoint.String()).To(Equal("api.example.com:443"))
	s.deleteCluster("external")
	s.empty()
}

// staysIdle checks that the reconcile of ready objects is a no-op: the manager writes neither to them nor to VCD.
func (s *site) staysIdle(objects ...conditioned) {
	s.t.Helper()
	s.quiet(objects...)
	since := len(s.Requests())
	for _, obj := range objects { // An annotation triggers a reconcile.
		patch := client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"test.example.com/look":"again"}}}`))
		s.g.Expect(shared.client.Patch(s.t.Context(), obj, patch)).To(Succeed())
	}
	for _, obj := range objects {
		version := obj.GetResourceVersion()
		s.g.Consistently(func() (string, error) {
			err := s.get(obj)
			return obj.GetResourceVersion(), err
		}, "2s", "100ms").Should(Equal(version), "%T %s was updated", obj, obj.GetName())
	}
	s.g.Expect(simsite.Writes(s.Simulator, since)).To(BeEmpty())
}

// expectedAPIErrors matches errors of a reconcile that a busy API server, or a conflict with another writer, may cause
// at any time.
var expectedAPIErrors = regexp.MustCompile(
	`the object has been modified|failed calling webhook|etcdserver: |context deadline exceeded`)

// errorsLogged lists the errors in the manager's log about reconciles of objects of this site.
func (s *site) errorsLogged() []string {
	s.t.Helper()
	log, err := os.ReadFile(shared.Manager.LogPath())
	s.g.Expect(err).NotTo(HaveOccurred())
	var lines []string
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "Reconciler error") && strings.Contains(line, s.namespace+"/") &&
			!expectedAPIErrors.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
