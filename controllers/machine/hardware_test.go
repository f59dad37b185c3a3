// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// sized requests CPUs, memory and hardware instead of a sizing policy.
func sized(m *infrav1.VCDMachine) {
	m.Spec.SizingPolicy = ""
	m.Spec.CPUs = 6
	m.Spec.Memory = ptr.To(resource.MustParse("12Gi"))
	m.Spec.HardwareVersion = "vmx-21"
}

func TestAMachineHasTheHardwareOfItsSpec(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0", sized)...)

	w.Ready("md-0")

	w.Expect(w.Sim.State().VMs).To(HaveExactElements(And(HaveField("CPUs", int64(6)),
		HaveField("MemoryMiB", int64(12<<10)), HaveField("HardwareVersion", "vmx-21"),
		HaveField("Status", vcdsim.PoweredOn))))
	w.EventuallyMachine("md-0", infrav1.VMInSyncCondition, infrav1.ReadyReason)
	w.ExpectSettled("md-0")
}

// TestARejectedHardwareRequestIsRepeated rejects the request for the hardware once. VCD did not accept it, so it does not
// count as a change that VCD failed to make.
func TestARejectedHardwareRequestIsRepeated(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0", sized)...)
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: "POST /api/vApp/vm/action/reconfigureVm",
		Status:    http.StatusBadRequest,
		Code:      "BUSY_ENTITY",
		Count:     1,
	})

	w.Ready("md-0")

	w.Expect(w.EventTexts()).NotTo(ContainElement(ContainSubstring("although VCD accepted")))
	w.Expect(w.Sim.State().VMs).To(HaveExactElements(And(HaveField("CPUs", int64(6)), HaveField("HardwareVersion", "vmx-21"))))
}

func TestInvalidHardware(t *testing.T) {
	tests := []struct {
		name    string
		mod     func(*infrav1.VCDMachine)
		message string
	}{
		{
			name:    "a version below the template's",
			mod:     func(m *infrav1.VCDMachine) { m.Spec.HardwareVersion = "vmx-14" },
			message: "spec.hardwareVersion is vmx-14, but template",
		},
		{
			name:    "a version that the VDC does not have",
			mod:     func(m *infrav1.VCDMachine) { m.Spec.HardwareVersion = "vmx-99" },
			message: "spec.hardwareVersion is vmx-99, but VDC acme-vdc supports vmx-14",
		},
		{
			name: "CPUs in addition to a policy",
			mod: func(m *infrav1.VCDMachine) {
				m.Spec.CPUs = 2
				m.Spec.SizingPolicy = "small"
			},
			message: "spec.sizingPolicy of the VCDMachine sets sizing policy small: remove one of them",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("md-0", tt.mod)...)
			w.Ready()

			w.EventuallyMachine("md-0", infrav1.PlacementReadyCondition, infrav1.PlacementInvalidReason)

			w.Expect(conditions.GetMessage(w.VCDMachine("md-0"), infrav1.PlacementReadyCondition)).To(
				ContainSubstring(tt.message))
			m := w.VCDMachine("md-0")
			m.Spec.HardwareVersion = ""
			m.Spec.CPUs = 0
			w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
			w.Ready("md-0")
		})
	}
}
