// SPDX-License-Identifier: Apache-2.0

package affinity_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// renameVApp renames the vApp of a VM in VCD.
func renameVApp(w *controllertest.Env, vm string) {
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VApp(e.VM(vm).VAppID).Name = "renamed" })
}

func TestARuleIsKeptWhileItsVMsAreNotFound(t *testing.T) {
	tests := []struct {
		name string
		lose func(*controllertest.Env)
	}{
		{"their vApp is renamed", func(w *controllertest.Env) { renameVApp(w, "cp-0") }},
		{
			"their vApp is no longer shared with the user",
			func(w *controllertest.Env) {
				for _, v := range w.Sim.State().VApps {
					w.Hide(v.Name, true)
				}
			},
		},
		{
			"they were moved to another vApp",
			func(w *controllertest.Env) {
				w.ComposeForeign("elsewhere")
				w.Sim.Edit(func(e *vcdsim.Editor) {
					e.SetOwner(e.VApp("elsewhere"), "capvcd")
					e.MoveVM(e.VM("cp-0"), e.VApp("elsewhere"))
					e.MoveVM(e.VM("cp-1"), e.VApp("elsewhere"))
				})
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, machines("cp-0", "cp-1", "w-0")...)
			w.SetAntiAffinity(both)
			w.Ready("cp-0", "cp-1", "w-0")
			w.EventuallyAffinity(infrav1.ReadyReason)
			before := rules(w)
			writes := ruleWrites(w)

			tt.lose(w)
			for range 5 {
				w.Clock.Add(int64(6 * time.Minute))
				w.ReconcileAffinity(w)
			}

			w.Expect(rules(w)).To(Equal(before))
			w.Expect(ruleWrites(w)).To(Equal(writes))
		})
	}
}

func TestAVMInARenamedVAppJoinsItsRule(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1")...)
	w.Ready("cp-0", "cp-1")
	renameVApp(w, "cp-0")

	w.SetAntiAffinity(both)
	w.EventuallyAffinity(infrav1.ReadyReason)

	w.Expect(rules(w)).To(Equal(map[string][]string{ruleName(w, "control-plane"): {"cp-0", "cp-1"}}))
}

func TestAnInvisibleVMIsNamed(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1", "cp-2")...)
	w.SetAntiAffinity(both)
	w.Ready("cp-0", "cp-1", "cp-2")
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM("cp-2")); e.DeleteVM(e.VM("cp-1")) })
	w.Clock.Add(int64(6 * time.Minute))

	w.Expect(w.EventuallyAffinity(infrav1.VMUnverifiedReason)).To(ContainSubstring("cp-1, cp-2"))

	w.Expect(rules(w)).To(Equal(map[string][]string{ruleName(w, "control-plane"): {"cp-0"}}))
	for _, name := range []string{"cp-1", "cp-2"} { // The identity of their machines can prove it.
		m := w.VCDMachine(name)
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, infrav1.VMGoneAnnotation, "true")
		w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	}
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Expect(rules(w)).To(BeEmpty())
}

func TestRulesInAZoneUseTheIdentityOfItsMachines(t *testing.T) {
	objects := append(controllertest.InZone("b", "cp-0", controllertest.ControlPlane),
		controllertest.InZone("b", "cp-1", controllertest.ControlPlane)...)
	w := controllertest.NewInZones(t, objects...)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.SetRole("acme", "admin", vcdsim.RoleClusterAuthor) })
	w.AddIdentity("other", "admin")
	w.CreateZone("also-b", func(d *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
		d.Spec.OVDC = controllertest.ZoneVDCs["b"]
		z.Spec.IdentityRef.Name = "other"
		z.Spec.PlacementConstraint.Catalog = "kubernetes-b"
	})
	w.EventuallyZone("also-b", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Ready("cp-0", "cp-1")

	w.SetAntiAffinity(both)
	w.EventuallyAffinity(infrav1.ReadyReason)

	w.Expect(rules(w)).To(Equal(map[string][]string{ruleName(w, "control-plane"): {"cp-0", "cp-1"}}))
}
