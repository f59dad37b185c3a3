// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
)

// allow sets the extra configuration that the identity allows.
func allow(w *controllertest.Env, patterns ...string) {
	identity := &infrav1.VCDIdentity{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{
		Namespace: controllertest.Namespace,
		Name:      w.VCDCluster().Spec.IdentityRef.Name,
	}, identity)).To(Succeed())
	identity.Spec.AllowedExtraConfig = patterns
	w.Expect(w.Client.Update(w.Ctx, identity)).To(Succeed())
}

// configured returns a machine with extra configuration.
func configured(entries ...infrav1.ExtraConfigEntry) []client.Object {
	return controllertest.NewMachine("a", func(m *infrav1.VCDMachine) { m.Spec.ExtraConfig = entries })
}

func TestExtraConfigIsWrittenWithTheBootstrapData(t *testing.T) {
	w := controllertest.New(t, configured(infrav1.ExtraConfigEntry{Key: "pciPassthru.use64bitMMIO", Value: "TRUE"})...)
	allow(w, "pciPassthru*")

	w.Ready("a")

	vm := w.Sim.State().VMs[0]
	w.Expect(vm.ExtraConfig).To(HaveKeyWithValue("pciPassthru.use64bitMMIO", "TRUE"))
	w.Expect(guestinfo.IsFor(vm.ExtraConfig, w.VCDMachine("a").Spec.RecordedState.InstanceID)).To(BeTrue())
	changes := 0
	for operation, count := range w.Sim.Counters() {
		if strings.Contains(operation, "reconfigureVm") {
			changes += count
		}
	}
	w.Expect(changes).To(Equal(1), "it needs no separate request: %v", w.Sim.Counters())
	w.ExpectSettled("a")
}

func TestExtraConfigNotAllowedByTheIdentityIsNotWritten(t *testing.T) {
	w := controllertest.New(t, configured(
		infrav1.ExtraConfigEntry{Key: "pciPassthru.use64bitMMIO", Value: "TRUE"},
		infrav1.ExtraConfigEntry{Key: "svga.present", Value: "FALSE"},
	)...)
	allow(w, "svga.*")
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.ExtraConfigNotAllowedReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("a"), infrav1.PlacementReadyCondition)).To(And(
		ContainSubstring("does not allow these keys of spec.extraConfig: pciPassthru.use64bitMMIO"),
		ContainSubstring("spec.allowedExtraConfig")))
	w.Expect(w.Sim.State().VMs).To(BeEmpty())

	allow(w, "svga.*", "pciPassthru.*")
	w.Ready("a")
	w.Expect(w.Sim.State().VMs[0].ExtraConfig).To(HaveKeyWithValue("svga.present", "FALSE"))
}

// Admission can be bypassed, for example while the webhooks are not installed.
func TestNoIdentityAllowsToReplaceTheBootstrapData(t *testing.T) {
	w := controllertest.New(t, configured(infrav1.ExtraConfigEntry{Key: "guestinfo.userdata", Value: "evil"})...)
	allow(w, "*")
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.ExtraConfigNotAllowedReason)
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}
