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
)

// withIgnition returns the objects of a machine with bootstrap data of format ignition and a NIC with an address source;
// none: no NIC.
func withIgnition(config string, source infrav1.AddressSource) []client.Object {
	objects := controllertest.NewMachine("a", func(m *infrav1.VCDMachine) {
		if source != "" {
			m.Spec.Networks = []infrav1.NetworkSpec{{AddressSource: source}}
		}
	})
	for _, o := range objects {
		if secret, ok := o.(*corev1.Secret); ok {
			secret.Data["format"] = []byte("ignition")
			secret.Data["value"] = []byte(config)
		}
	}
	return objects
}

func TestIgnitionWithoutDHCPIsReportedBeforeAVMIsCreated(t *testing.T) {
	t.Parallel()
	const config = `{"ignition":{"version":"3.3.0"}}`
	const networkd = `{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/etc/systemd/network/10-eth.network"}]}}`
	tests := []struct {
		name, config string
		source       infrav1.AddressSource
		reason       string
	}{
		{"VCD's static pool", config, infrav1.AddressStaticPool, infrav1.NotSupportedReason},
		{"the network of the cluster", config, "", infrav1.NotSupportedReason},
		{"VCD's static pool, which the bootstrap data configures", networkd, infrav1.AddressStaticPool, infrav1.ReadyReason},
		{"DHCP", config, infrav1.AddressDHCP, infrav1.ReadyReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, withIgnition(tt.config, tt.source)...)
			w.Ready()

			w.EventuallyMachine("a", infrav1.BootstrapReadyCondition, tt.reason)

			if tt.reason == infrav1.NotSupportedReason {
				w.Expect(conditions.GetMessage(w.VCDMachine("a"), infrav1.BootstrapReadyCondition)).To(And(
					ContainSubstring("addressSource StaticPool"), ContainSubstring("set addressSource DHCP")))
				w.Expect(w.Writes()).To(BeZero())
			}
		})
	}
}
