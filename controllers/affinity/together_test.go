// SPDX-License-Identifier: Apache-2.0

package affinity_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	onOneHost        = "Affinity"
	onDifferentHosts = "Anti-Affinity"
)

// cached returns the objects of two machines of different MachineDeployments whose VMs share a host.
func cached(policy infrav1.AffinityPolicy) []client.Object {
	var objects []client.Object
	for name, deployment := range map[string]string{"app": "apps", "cache": "caches"} {
		objects = append(objects, controllertest.NewMachine(name, controllertest.OfDeployment(deployment),
			func(m *infrav1.VCDMachine) {
				m.Spec.Affinity = &infrav1.Affinity{Group: "cache", Policy: policy}
			})...)
	}
	return objects
}

// setAffinity changes whether the VM of a machine must be on the host of its group.
func setAffinity(w *controllertest.Env, name string, wanted *infrav1.Affinity) {
	m := w.VCDMachine(name)
	m.Spec.Affinity = wanted
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
}

func TestMachinesOfSeveralPoolsShareOneHost(t *testing.T) {
	w := controllertest.New(t, append(cached(infrav1.AffinityPreferred), machines("cp-0", "cp-1")...)...)
	w.SetAntiAffinity(controllertest.AntiAffinity{ControlPlane: infrav1.AntiAffinityPreferred})
	w.Ready("app", "cache", "cp-0", "cp-1")

	w.EventuallyAffinity(infrav1.ReadyReason)

	group := ruleName(w, "affinity-cache")
	controlPlane := ruleName(w, "control-plane")
	w.Expect(rules(w)).To(Equal(map[string][]string{group: {"app", "cache"}, controlPlane: {"cp-0", "cp-1"}}))
	w.Expect(w.Sim.State().Affinity).To(ConsistOf(
		And(HaveField("Name", group), HaveField("Polarity", onOneHost), HaveField("Mandatory", false)),
		And(HaveField("Name", controlPlane), HaveField("Polarity", onDifferentHosts))))
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("Creating affinity rule " + group)))

	w.Sim.Edit(func(e *vcdsim.Editor) {
		for _, rule := range e.AffinityRules() {
			rule.Enabled = false
		}
	})
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Expect(w.Sim.State().Affinity).To(HaveEach(HaveField("Enabled", true)))

	setAffinity(w, "cache", nil)
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Expect(rules(w)).To(HaveLen(1), "one VM needs no rule")
	w.Expect(rules(w)).To(HaveKey(controlPlane))
}

func TestTheRuleOfAGroupIsDeletedWithTheCluster(t *testing.T) {
	w := controllertest.New(t, cached(infrav1.AffinityPreferred)...)
	w.Ready("app", "cache")
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Expect(rules(w)).To(HaveLen(1))

	w.DeleteMachine("app")
	w.DeleteMachine("cache")
	w.DeleteCluster()

	w.Expect(w.Sim.State().Affinity).To(BeEmpty())
}

func TestAVMWithARequiredGroupIsPoweredOnAfterJoiningItsRule(t *testing.T) {
	w := controllertest.New(t, cached(infrav1.AffinityRequired)...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("app", clusterv1.ReadyCondition, infrav1.WaitingForAffinityRuleReason)
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.EventuallyMachine("app", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("cache", clusterv1.ReadyCondition, infrav1.WaitingForAffinityRuleReason)
	w.EventuallyAffinity(infrav1.ReadyReason)

	w.Expect(w.Sim.State().Affinity).To(HaveExactElements(
		And(HaveField("Mandatory", true), HaveField("Polarity", onOneHost))))
	w.EventuallyMachine("cache", clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestAVMInAForeignAffinityRuleIsNamed(t *testing.T) {
	w := controllertest.New(t, cached(infrav1.AffinityPreferred)...)
	w.Ready("app", "cache")
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.AddAffinityRule("theirs", e.VM("app"), e.VM("cache"))
		e.AffinityRules()[0].Polarity = onOneHost
	})

	message := w.EventuallyAffinity(infrav1.AffinityConflictReason)

	w.Expect(message).To(And(ContainSubstring("app in theirs"), ContainSubstring("cache in theirs")))
	w.Expect(rules(w)).To(HaveLen(1), "the foreign rule is kept")
}
