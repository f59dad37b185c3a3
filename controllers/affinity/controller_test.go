// SPDX-License-Identifier: Apache-2.0

package affinity_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// machines returns the objects of control plane machines (cp-…) and of machines of MachineDeployment md-0 (w-…).
func machines(names ...string) []client.Object {
	var objects []client.Object
	for _, name := range names {
		mod := controllertest.OfDeployment("md-0")
		if strings.HasPrefix(name, "cp-") {
			mod = controllertest.ControlPlane
		}
		objects = append(objects, controllertest.NewMachine(name, mod)...)
	}
	return objects
}

// rules returns the names of the VMs in each rule.
func rules(w *controllertest.Env) map[string][]string {
	state := w.Sim.State()
	names := map[string]string{}
	for _, vm := range state.VMs {
		names[vm.ID] = vm.Name
	}
	found := map[string][]string{}
	for _, rule := range state.Affinity {
		var vms []string
		for _, id := range rule.VMs {
			vms = append(vms, names[id])
		}
		slices.Sort(vms)
		found[rule.Name] = vms
	}
	return found
}

// ruleWrites counts the writes to rules.
func ruleWrites(w *controllertest.Env) int {
	n := 0
	for _, r := range w.Sim.Requests() {
		if r.Changes() && strings.Contains(r.Operation, "ffinityRule") {
			n++
		}
	}
	return n
}

func ruleName(w *controllertest.Env, group string) string {
	return "capi-" + w.VCDCluster().Spec.InfraID[max(0, len(w.VCDCluster().Spec.InfraID)-36):] + "-" + group
}

var both = controllertest.AntiAffinity{
	ControlPlane:       infrav1.AntiAffinityPreferred,
	MachineDeployments: infrav1.AntiAffinityPreferred,
}

func TestMachineGroupsGetRulesThatAreDeletedWithThem(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1", "w-0", "w-1")...)
	w.SetAntiAffinity(both)
	w.Ready("cp-0", "cp-1", "w-0", "w-1")

	w.EventuallyAffinity(infrav1.ReadyReason)

	controlPlane := ruleName(w, "control-plane")
	workers := ruleName(w, "md-md-0")
	w.Expect(rules(w)).To(Equal(map[string][]string{controlPlane: {"cp-0", "cp-1"}, workers: {"w-0", "w-1"}}))
	w.Expect(w.Sim.State().Affinity).To(HaveEach(And(HaveField("Mandatory", false), HaveField("Enabled", true))))
	w.Expect(ruleWrites(w)).To(Equal(2))
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("AffinityRuleChanged")))

	for _, o := range machines("w-2", "w-3") {
		w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
	}
	w.SetAntiAffinity(both)
	w.Ready("w-2", "w-3")
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Expect(rules(w)).To(HaveKeyWithValue(workers, []string{"w-0", "w-1", "w-2", "w-3"}))
	w.Expect(ruleWrites(w)).To(Equal(3), "one rule for both")

	w.DeleteMachine("w-1")
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Expect(rules(w)).To(HaveKeyWithValue(workers, []string{"w-0", "w-2", "w-3"}))
	w.Expect(ruleWrites(w)).To(Equal(3), "VCD removes VMs from rules when it deletes them")

	for _, name := range []string{"w-0", "w-2", "w-3"} { // The MachineDeployment is deleted.
		w.DeleteMachine(name)
	}
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Expect(slices.Collect(maps.Keys(rules(w)))).To(HaveExactElements(controlPlane))

	w.DeleteMachine("cp-0")
	w.DeleteMachine("cp-1")
	w.DeleteCluster()
	w.Expect(w.Sim.State().Affinity).To(BeEmpty())
}

func TestUnchangedRulesCauseNoRequests(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1")...)
	w.SetAntiAffinity(both)
	w.Ready("cp-0", "cp-1")
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.LookupTTL = 10 * time.Minute
	w.Restart(t, events.NewFakeRecorder(10))
	w.EventuallyAffinity(infrav1.ReadyReason)
	before := w.VCDCluster().ResourceVersion
	calls := len(w.Sim.Requests())

	for range 10 {
		w.ReconcileAffinity(w)
	}

	w.Expect(w.Sim.Requests()).To(HaveLen(calls))
	w.Expect(w.VCDCluster().ResourceVersion).To(Equal(before))
	w.Clock.Add(int64(6 * time.Minute))
	w.ReconcileAffinity(w)
	w.Expect(w.Sim.Requests()[calls:]).To(HaveEach(HaveField("Changes()", false)))
}

func TestAManuallyChangedRuleIsRepaired(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*vcdsim.Editor)
	}{
		{"deleted", func(e *vcdsim.Editor) { e.DeleteAffinityRules() }},
		{
			"disabled",
			func(e *vcdsim.Editor) {
				for _, rule := range e.AffinityRules() {
					rule.Enabled = false
				}
			},
		},
		{
			"made mandatory",
			func(e *vcdsim.Editor) {
				for _, rule := range e.AffinityRules() {
					rule.Mandatory = true
				}
			},
		},
		{
			"without a VM",
			func(e *vcdsim.Editor) {
				for _, rule := range e.AffinityRules() {
					rule.VMs = rule.VMs[:1]
				}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, machines("cp-0", "cp-1")...)
			w.SetAntiAffinity(both)
			w.Ready("cp-0", "cp-1")
			w.EventuallyAffinity(infrav1.ReadyReason)

			w.Sim.Edit(tt.spoil)
			w.EventuallyAffinity(infrav1.ReadyReason)

			w.Expect(rules(w)).To(Equal(map[string][]string{ruleName(w, "control-plane"): {"cp-0", "cp-1"}}))
			w.Expect(w.Sim.State().Affinity[0]).To(And(HaveField("Mandatory", false), HaveField("Enabled", true)))
		})
	}
}

func TestPolicyNoneRemovesTheRulesAndTheCondition(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1")...)
	w.SetAntiAffinity(both)
	w.Ready("cp-0", "cp-1")
	w.EventuallyAffinity(infrav1.ReadyReason)

	w.SetAntiAffinity(controllertest.AntiAffinity{})

	w.Eventually(func(g Gomega) {
		w.ReconcileAffinity(g)
		c := w.VCDCluster()
		g.Expect(conditions.Get(c, infrav1.AffinityRulesReadyCondition)).To(BeNil())
		g.Expect(c.Spec.RecordedState.AffinityRuleOVDCIDs).To(BeEmpty())
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.Expect(w.Sim.State().Affinity).To(BeEmpty())
}

func TestAVMWithARequiredRuleIsPoweredOnAfterJoiningIt(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1")...)
	w.SetAntiAffinity(controllertest.AntiAffinity{ControlPlane: infrav1.AntiAffinityRequired})
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.WaitingForAffinityRuleReason)
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("cp-1", clusterv1.ReadyCondition, infrav1.WaitingForAffinityRuleReason)
	w.Expect(w.Sim.State().VMs).To(ContainElement(And(HaveField("Name", "cp-1"),
		HaveField("Status", vcdsim.PoweredOff))))
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Expect(w.Sim.State().Affinity).To(HaveExactElements(HaveField("Mandatory", true)))
	w.EventuallyMachine("cp-1", clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestAnUnsatisfiableRuleSuggestsARemedy(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1")...)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VDC("acme-vdc").Hosts = 1 })
	w.SetAntiAffinity(controllertest.AntiAffinity{ControlPlane: infrav1.AntiAffinityRequired})
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.WaitingForAffinityRuleReason)
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Ready("cp-0")
	w.EventuallyMachine("cp-1", clusterv1.ReadyCondition, infrav1.WaitingForAffinityRuleReason)
	w.EventuallyAffinity(infrav1.ReadyReason)

	w.EventuallyMachine("cp-1", clusterv1.ReadyCondition, infrav1.TaskFailedReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("cp-1"), infrav1.PoweredOnCondition)).To(And(
		ContainSubstring("anti-affinity rule"), ContainSubstring("add hosts, or set Preferred")))
	w.SetAntiAffinity(controllertest.AntiAffinity{ControlPlane: infrav1.AntiAffinityPreferred})
	w.EventuallyAffinity(infrav1.ReadyReason)
	now := time.Now().Add(time.Hour)
	w.Machine.Now = func() time.Time { return now }
	w.EventuallyMachine("cp-1", clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestAnUnusedVDCIsForgotten(t *testing.T) {
	w := controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: vcdsim.ThreeZones()}, machines("cp-0", "cp-1")...)
	w.SetAntiAffinity(both)
	w.Ready("cp-0", "cp-1")
	w.EventuallyAffinity(infrav1.ReadyReason)
	home := w.VCDCluster().Spec.RecordedState.AffinityRuleOVDCIDs
	w.Expect(home).To(HaveLen(1))
	recordVDC(w, "urn:vcloud:vdc:"+w.Sim.State().Model.Orgs[1].VDCs[1].ID)

	w.Eventually(func(g Gomega) {
		w.ReconcileAffinity(g)
		g.Expect(w.VCDCluster().Spec.RecordedState.AffinityRuleOVDCIDs).To(Equal(home))
	}, controllertest.Patience, "5ms").Should(Succeed())
}

func TestRulesAreDeletedDespiteADeletedVDC(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1")...)
	w.SetAntiAffinity(both)
	w.Ready("cp-0", "cp-1")
	w.EventuallyAffinity(infrav1.ReadyReason)
	home := w.VCDCluster().Spec.RecordedState.AffinityRuleOVDCIDs
	recordVDC(w, "urn:vcloud:vdc:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e")
	w.DeleteMachine("cp-0")
	w.DeleteMachine("cp-1")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(rules(w)).To(BeEmpty())
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.EventuallyCluster(infrav1.AffinityRulesDeletedCondition, infrav1.ForbiddenReason)
	c := w.VCDCluster()
	w.Expect(conditions.GetMessage(c, infrav1.AffinityRulesDeletedCondition)).To(
		ContainSubstring("remove it from spec.recordedState.affinityRuleOVDCIDs"))
	c.Spec.RecordedState.AffinityRuleOVDCIDs = home
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.IsClusterGone()).To(BeTrue())
	}, controllertest.Patience, "5ms").Should(Succeed())
}

// recordVDC records that the cluster may have rules in a VDC, given by URN, before the other VDCs.
func recordVDC(w *controllertest.Env, id string) {
	c := w.VCDCluster()
	c.Spec.RecordedState.AffinityRuleOVDCIDs = append([]string{id}, c.Spec.RecordedState.AffinityRuleOVDCIDs...)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

func TestAMissingRightIsNamed(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1")...)
	w.SetAntiAffinity(both)
	w.Ready("cp-0", "cp-1")
	fault := w.Sim.Faults().Add(vcdsim.Fault{Operation: "* /api/vdc/vmAffinityRules*", Status: 403})

	w.Expect(w.EventuallyAffinity(infrav1.ForbiddenReason)).To(ContainSubstring("VM-VM Affinity Edit"))
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Sim.Faults().Remove(fault)
	w.EventuallyAffinity(infrav1.ReadyReason)
}

func TestAVMInAForeignRuleIsReported(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1", "cp-2", "w-0")...)
	w.Ready("cp-0", "cp-1", "cp-2", "w-0")
	w.Sim.Edit(func(e *vcdsim.Editor) { e.AddAffinityRule("theirs", e.VM("cp-2"), e.VM("w-0")) })

	w.SetAntiAffinity(controllertest.AntiAffinity{ControlPlane: infrav1.AntiAffinityPreferred})

	w.Expect(w.EventuallyAffinity(infrav1.AffinityConflictReason)).To(ContainSubstring("cp-2 in theirs"))
	w.Expect(rules(w)).To(HaveKeyWithValue(ruleName(w, "control-plane"), []string{"cp-0", "cp-1"}))
}

func TestALostResponseLeavesOneRule(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1")...)
	w.Ready("cp-0", "cp-1")
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST /api/vdc/*", DropAfter: true, Count: 1})

	w.SetAntiAffinity(both)
	w.EventuallyAffinity(infrav1.ReadyReason)

	w.Expect(rules(w)).To(Equal(map[string][]string{ruleName(w, "control-plane"): {"cp-0", "cp-1"}}))
}

func TestUndeletableRulesBlockTheDeletionUntilAUserKeepsThem(t *testing.T) {
	for status, reason := range map[int]string{400: infrav1.RequestRejectedReason, 403: infrav1.ForbiddenReason} {
		t.Run(reason, func(t *testing.T) {
			w := controllertest.New(t, machines("cp-0", "cp-1")...)
			w.SetAntiAffinity(both)
			w.Ready("cp-0", "cp-1")
			w.EventuallyAffinity(infrav1.ReadyReason)
			w.DeleteMachine("cp-0")
			w.DeleteMachine("cp-1")
			w.Sim.Faults().Add(vcdsim.Fault{Operation: "DELETE /api/vmAffinityRule*", Status: status})
			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

			w.EventuallyCluster(infrav1.AffinityRulesDeletedCondition, reason)

			c := w.VCDCluster()
			w.Expect(conditions.GetMessage(c, infrav1.AffinityRulesDeletedCondition)).To(
				ContainSubstring(infrav1.KeepVAppAnnotation + "=true"))
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, infrav1.KeepVAppAnnotation, "true")
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			w.Eventually(func(g Gomega) {
				_, err := w.ReconcileCluster()
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(w.IsClusterGone()).To(BeTrue())
			}, controllertest.Patience, "5ms").Should(Succeed())
		})
	}
}
