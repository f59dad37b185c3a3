package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestNameOfATemplateIsKeptThroughRetries(t *testing.T) {
	w := controllertest.New(t,
		controllertest.NewMachine("cp-0",
			func(m *infrav1.VCDMachine) { m.Spec.VMNamingTemplate = "{{ .cluster.name }}-{{ .random }}" })...)
	w.Sim.Faults().Add(vcdsim.Fault{Operation: composeCall, DropAfter: true, Count: 1})
	w.Ready("cp-0")

	name := w.VCDMachine("cp-0").Annotations[infrav1.VMNameAnnotation]
	w.Expect(name).To(MatchRegexp(`^c1-[a-z0-9]{5}$`))
	w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("Name", name)))
	w.Expect(w.VCDMachine("cp-0").Status.Addresses).To(
		ContainElement(clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: name}))
}

func TestNamingTemplateThatGivesNoName(t *testing.T) {
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

func TestANameThatIsThereBeforeTheInstanceIDIsKept(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
		m.Annotations = map[string]string{infrav1.VMNameAnnotation: "restored"}
	})...)
	w.Ready("cp-0")

	m := w.VCDMachine("cp-0")
	w.Expect(m.Annotations).To(HaveKeyWithValue(infrav1.VMNameAnnotation, "restored"), "admission would refuse another")
	w.Expect(m.Annotations).To(HaveKeyWithValue(infrav1.InstanceIDAnnotation, string(m.UID)))
	w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("Name", "restored")))
}

func TestANameThatCannotBeThatOfAVMIsReported(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
		m.Annotations = map[string]string{infrav1.VMNameAnnotation: "a;b"}
	})...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.VMNameInvalidReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), infrav1.PlacementReadyCondition)).
		To(ContainSubstring(infrav1.VMNameAnnotation))
}
