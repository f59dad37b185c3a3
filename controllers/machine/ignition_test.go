// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

// withIgnition returns the objects of a machine with bootstrap data in Ignition format, and with NICs.
func withIgnition(config string, networks ...infrav1.NetworkSpec) []client.Object {
	objects := controllertest.NewMachine("a", func(m *infrav1.VCDMachine) { m.Spec.Networks = networks })
	for _, o := range objects {
		if secret, ok := o.(*corev1.Secret); ok {
			secret.Data["format"] = []byte("ignition")
			secret.Data["value"] = []byte(config)
		}
	}
	return objects
}

// TestAnIgnitionGuestHasTheNameAndAddressesOfItsMachine reads the VM as its guest does.
func TestAnIgnitionGuestHasTheNameAndAddressesOfItsMachine(t *testing.T) {
	t.Parallel()
	const version2 = `{"ignition":{"version":"2.3.0"}}`
	const version3 = `{"ignition":{"version":"3.3.0"}}`
	tests := []struct {
		name, config string
		networks     []infrav1.NetworkSpec
		addresses    []string
	}{
		{name: "in the network of the cluster", config: version2, addresses: []string{`^192\.168\.100\.`}},
		{
			name:   "on two NICs, one with VCD's static pool and one with a manual address",
			config: version3,
			networks: []infrav1.NetworkSpec{
				{Name: "nodes"},
				{Name: "storage", AddressSource: infrav1.AddressManual, Addresses: []string{"10.20.0.77/24"}},
			},
			addresses: []string{`^192\.168\.100\.`, `^10\.20\.0\.77$`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, withIgnition(tt.config, tt.networks...)...)

			w.Ready("a")

			vm := w.Sim.State().VMs[0]
			var nics []guest.NIC
			for _, nic := range vm.NICs {
				nics = append(nics, guest.NIC{MAC: nic.MAC, Network: nic.Network})
			}
			got, err := guest.Read(vm.ExtraConfig, nics, guest.Machine{})
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(got.IsIgnition).To(BeTrue())
			w.Expect(got.Hostname).To(Equal(vm.Name))
			w.Expect(got.ProviderID).To(Equal(w.VCDMachine("a").Spec.ProviderID))
			w.Expect(got.Addresses).To(HaveLen(len(tt.addresses)))
			for i, want := range tt.addresses {
				w.Expect(got.Addresses[nics[i].MAC][0].Addr().String()).To(MatchRegexp(want))
			}
		})
	}
}

func TestUnusableIgnitionIsReportedBeforeAVMIsCreated(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, config string
		want         string
	}{
		{"a configuration that needs to be transpiled", "variant: flatcar", "transpile Butane"},
		{"a configuration without a version", "{}", "no ignition.version"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, withIgnition(tt.config)...)
			w.Ready()

			w.EventuallyMachine("a", infrav1.BootstrapReadyCondition, infrav1.BootstrapDataInvalidReason)

			w.Expect(conditions.GetMessage(w.VCDMachine("a"), infrav1.BootstrapReadyCondition)).To(ContainSubstring(tt.want))
			w.Expect(w.Writes()).To(BeZero())
		})
	}
}
