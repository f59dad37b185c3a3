// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	consolidateCall = "POST /api/vApp/vm/action/consolidate"
	reconfigureCall = "POST /api/vApp/vm/action/reconfigureVm"
)

func withDisk(size string) func(*infrav1.VCDMachine) {
	return func(m *infrav1.VCDMachine) { m.Spec.DiskSize = ptr.To(resource.MustParse(size)) }
}

// withoutRight returns the tenant whose Cluster API user lacks a right.
func withoutRight(right string) vcdsim.Model {
	model := vcdsim.K8sTenant()
	for i := range model.Orgs[1].Roles {
		role := &model.Orgs[1].Roles[i]
		var left []string
		for _, r := range role.Rights {
			if r != right {
				left = append(left, r)
			}
		}
		role.Rights = left
	}
	return model
}

func TestLinkedCloneIsConsolidatedBeforeItsDiskGrows(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", withDisk("40Gi"))...)
	w.Ready("cp-0")

	w.Expect(w.Sim.State().VMs[0].Disks[0].SizeMiB).To(Equal(int64(40960)))
	w.Expect(w.Sim.State().VMs[0].LinkedClone).To(BeFalse())
	w.Expect(w.Sim.Counters()).To(And(HaveKeyWithValue(consolidateCall, 1), HaveKeyWithValue(reconfigureCall, 2)),
		"a separate request expands the disk")
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("VMConsolidated")))
	w.ExpectSettled("cp-0")
}

func TestNoVMIsConsolidatedUnnecessarily(t *testing.T) {
	t.Parallel()
	full := vcdsim.K8sTenant()
	full.Orgs[1].VDCs[0].FullClones = true
	for name, tt := range map[string]struct {
		model vcdsim.Model
		size  string
	}{
		"with the size of the template":      {vcdsim.K8sTenant(), "20Gi"},
		"in a VDC without fast provisioning": {full, "40Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			w := controllertest.NewWith(t, vcdsim.Config{Model: tt.model},
				controllertest.NewMachine("cp-0", withDisk(tt.size))...)
			w.Ready("cp-0")

			w.Expect(w.Sim.Counters()).NotTo(HaveKey(consolidateCall))
			w.Expect(w.Sim.Counters()).NotTo(HaveKey(ContainSubstring("sessions/current")))
			w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(reconfigureCall, 1))
			w.Expect(w.Sim.State().VMs[0].Disks[0].SizeMiB).To(
				Equal(ptr.To(resource.MustParse(tt.size)).Value() >> 20))
		})
	}
}

func TestNothingIsCreatedWithoutTheRightToConsolidate(t *testing.T) {
	w := controllertest.NewWith(t, vcdsim.Config{
		Model: withoutRight("vApp: VM Migrate, Force Undeploy, Relocate, Consolidate"),
	}, append(controllertest.NewMachine("grows", withDisk("40Gi")), controllertest.NewMachine("stays")...)...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("grows", infrav1.PlacementReadyCondition, infrav1.ForbiddenReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("grows"), infrav1.PlacementReadyCondition)).To(And(
		ContainSubstring(`"vApp: VM Migrate, Force Undeploy, Relocate, Consolidate"`), ContainSubstring("spec.diskSize")))
	w.Expect(w.Writes()).To(BeZero())
	w.Ready("stays")
}

func TestAFailedConsolidationIsReportedAndRetried(t *testing.T) {
	w := controllertest.NewOn(t, vcdsim.Profile{Name: "test", Scale: 0.01},
		controllertest.NewMachine("cp-0", withDisk("40Gi"))...)
	w.Sim.Faults().Add(vcdsim.Fault{
		FailTask:  true,
		Operation: "vappConsolidateVm",
		Count:     1,
		Message:   "native snapshots cannot be consolidated",
	})
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("cp-0", infrav1.BootstrapInjectedCondition, infrav1.TaskFailedReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), infrav1.BootstrapInjectedCondition)).To(
		ContainSubstring("native snapshots cannot be consolidated"))
	w.Expect(w.Sim.State().VMs[0].ExtraConfig).To(BeEmpty(), "no bootstrap data before the disk has its size")
	skipAhead(w)
	w.Ready("cp-0")
}

func TestARunningLinkedCloneIsConsolidatedBeforeItsDiskGrows(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	makeIdle(w, "cp-0")
	m := w.VCDMachine("cp-0")
	m.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Restart(t, events.NewFakeRecorder(100))

	w.Eventually(func() int64 {
		w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
		return w.Sim.State().VMs[0].Disks[0].SizeMiB
	}, controllertest.Patience, "5ms").Should(Equal(int64(40960)))

	w.EventuallyMachine("cp-0", infrav1.VMInSyncCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(consolidateCall, 1))
	w.Expect(w.Sim.State().VMs[0].PoweredOn).To(BeTrue())
}
