// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

func TestTemplatedNameIsKeptThroughRetries(t *testing.T) {
	w := controllertest.New(t,
		controllertest.NewMachine("cp-0",
			func(m *infrav1.VCDMachine) { m.Spec.VMNamingTemplate = "{{ .cluster.name }}-{{ .random }}" })...)
	w.Sim.Faults().Add(vcdsim.Fault{Operation: composeCall, DropAfter: true, Count: 1})
	w.Ready("cp-0")

	name := w.VCDMachine("cp-0").Spec.RecordedState.VMName
	w.Expect(name).To(MatchRegexp(`^c1-[a-z0-9]{5}$`))
	w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("Name", name)))
	w.Expect(w.VCDMachine("cp-0").Status.Addresses).To(
		ContainElement(clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: name}))
}

// TestTheGuestHasTheNameOfItsVM creates one VM with its vApp, and another one in that vApp. If the request has no
// computer name, VCD gives a VM the name in its template.
func TestTheGuestHasTheNameOfItsVM(t *testing.T) {
	templates := map[string]string{
		"a": "",
		"b": "{{ .cluster.name }}-worker-{{ .random }}",
		"c": "{{ .machine.name }}.example.com",
	}
	for _, layout := range []infrav1.VAppLayout{infrav1.VAppPerCluster, infrav1.VAppPerMachine} {
		t.Run(string(layout), func(t *testing.T) {
			w := controllertest.New(t)
			w.SetLayout(layout)
			for name, template := range templates {
				for _, o := range controllertest.NewMachine(name,
					func(m *infrav1.VCDMachine) { m.Spec.VMNamingTemplate = template }) {
					w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
				}
			}
			for name := range templates {
				w.Ready(name)
			}

			for name := range templates {
				m := w.VCDMachine(name)
				vmName := m.Spec.RecordedState.VMName
				w.Sim.Edit(func(e *vcdsim.Editor) {
					vm := e.VM(vmName)
					host, _, _ := strings.Cut(vmName, ".")
					w.Expect(vm.Customization.ComputerName).To(Equal(host))
					nic := guest.NIC{
						MAC:     vm.NICs[0].MAC,
						Mode:    guest.Mode(vm.NICs[0].Mode),
						Address: netip.MustParsePrefix(vm.NICs[0].Address + "/24"),
					}
					booted, err := guest.Read(vm.ExtraConfig, []guest.NIC{nic}, guest.Machine{})
					w.Expect(err).NotTo(HaveOccurred())
					w.Expect(booted.Hostname).To(Equal(vm.Name))
				})
			}
		})
	}
}

func TestInvalidNamingTemplate(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{{ env "HOME" }}`, `{{ .nope }}`, `{{`, `Upper_Case`} {
		t.Run(text, func(t *testing.T) {
			w := controllertest.New(t,
				controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) { m.Spec.VMNamingTemplate = text })...)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

			w.EventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.VMNameInvalidReason)

			w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"),
				infrav1.PlacementReadyCondition)).To(ContainSubstring("spec.vmNamingTemplate"))
			w.DeleteMachine("cp-0")
		})
	}
}

func TestANameSetBeforeTheInstanceIDIsKept(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
		m.Spec.RecordedState.VMName = "restored"
	})...)
	w.Ready("cp-0")

	m := w.VCDMachine("cp-0")
	w.Expect(m.Spec.RecordedState.VMName).To(Equal("restored"), "admission would reject another name")
	w.Expect(m.Spec.RecordedState.InstanceID).To(Equal(string(m.UID)))
	w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("Name", "restored")))
}

func TestAnInvalidVMNameIsReported(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
		m.Spec.RecordedState.VMName = "a;b"
	})...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.VMNameInvalidReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), infrav1.PlacementReadyCondition)).
		To(ContainSubstring("spec.recordedState.vmName"))
}
