// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// withDisks requests two disks, the second one on its own storage profile.
func withDisks(m *infrav1.VCDMachine) {
	m.Spec.AdditionalDisks = []infrav1.DiskSpec{
		{Name: "logs", Size: resource.MustParse("50Gi")},
		{Name: "data", Size: resource.MustParse("100Gi"), StorageProfile: "fast"},
	}
}

// disksOf returns the sizes and storage profiles of the disks of the only VM.
func disksOf(w *controllertest.Env) (sizes []int64, profiles []string) {
	names := map[string]string{}
	for _, p := range w.Sim.State().Model.Orgs[1].VDCs[0].StorageProfiles {
		names[p.ID] = p.Name
	}
	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
	for _, d := range w.Sim.State().VMs[0].Disks {
		sizes = append(sizes, d.SizeMiB)
		profiles = append(profiles, names[d.StorageProfileID])
	}
	return sizes, profiles
}

func TestAMachineHasItsAdditionalDisks(t *testing.T) {
	tests := []struct {
		name  string
		fault *vcdsim.Fault
		fast  bool
	}{
		{name: "immediately"},
		{name: "even if VMs are linked clones", fast: true},
		{
			name:  "once, although the task fails the first time",
			fault: &vcdsim.Fault{FailTask: true, Operation: "vappUpdateVm", Message: "disk full", Count: 1},
		},
		{
			name: "once, although the response was lost",
			fault: &vcdsim.Fault{
				Operation: "POST /api/vApp/vm/action/reconfigureVm",
				DropAfter: true,
				Count:     1,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := vcdsim.K8sTenant()
			model.Orgs[1].VDCs[0].FullClones = !tt.fast
			w := controllertest.NewWith(t, vcdsim.Config{
				Profile: vcdsim.Profile{Name: "test", Scale: 0.001},
				Model:   model,
			}, controllertest.NewMachine("md-0", withDisks)...)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			if tt.fault != nil {
				w.Sim.Faults().Add(*tt.fault)
				if tt.fault.FailTask {
					w.EventuallyMachine("md-0", infrav1.BootstrapInjectedCondition, infrav1.TaskFailedReason)
					skipAhead(w)
				}
			}

			w.Ready("md-0")

			sizes, profiles := disksOf(w)
			w.Expect(sizes).To(Equal([]int64{20 << 10, 50 << 10, 100 << 10}))
			w.Expect(profiles).To(Equal([]string{"standard", "standard", "fast"}))
			w.EventuallyMachine("md-0", infrav1.VMInSyncCondition, infrav1.ReadyReason)
			w.ExpectSettled("md-0")
		})
	}
}

func TestAMachineIsNotCreatedWithoutTheStorageProfileOfItsDisks(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0", withDisks, func(m *infrav1.VCDMachine) {
		m.Spec.AdditionalDisks[1].StorageProfile = "nope"
	})...)
	w.Ready()

	w.EventuallyMachine("md-0", infrav1.PlacementReadyCondition, infrav1.StorageProfileNotFoundReason)

	m := w.VCDMachine("md-0")
	w.Expect(conditions.GetMessage(m, infrav1.PlacementReadyCondition)).To(
		ContainSubstring("spec.additionalDisks[1].storageProfile"))
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
	m.Spec.AdditionalDisks[1].StorageProfile = "fast"
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Ready("md-0")
}

// withIOPS requests IOPS for all disks.
func withIOPS(m *infrav1.VCDMachine) {
	withDisks(m)
	m.Spec.DiskIOPS = 1200
	m.Spec.AdditionalDisks[0].IOPS = 700
	m.Spec.AdditionalDisks[1].IOPS = 2500
}

// iopsOf returns the IOPS of the disks of the only VM.
func iopsOf(w *controllertest.Env) []int64 {
	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
	var iops []int64
	for _, d := range w.Sim.State().VMs[0].Disks {
		iops = append(iops, d.IOPS.Reservation)
	}
	return iops
}

// limitedProfiles sets IOPS limits on the storage profiles of the first VDC.
func limitedProfiles(profiles []vcdsim.StorageProfile) {
	for i := range profiles {
		profiles[i].IOPS = vcdsim.IOPS{Enabled: true, DiskMax: 3000, DiskDefault: 500}
	}
}

func TestTheDisksOfAMachineHaveTheirIOPS(t *testing.T) {
	for name, fast := range map[string]bool{"of a full clone": false, "of a linked clone": true} {
		t.Run(name, func(t *testing.T) {
			model := vcdsim.K8sTenant()
			model.Orgs[1].VDCs[0].FullClones = !fast
			limitedProfiles(model.Orgs[1].VDCs[0].StorageProfiles)
			w := controllertest.NewWith(t, vcdsim.Config{
				Profile: vcdsim.Profile{Name: "test", Scale: 0.001},
				Model:   model,
			}, controllertest.NewMachine("md-0", withIOPS)...)

			w.Ready("md-0")

			w.Expect(iopsOf(w)).To(Equal([]int64{1200, 700, 2500}))
			w.ExpectSettled("md-0")
		})
	}
}

func TestAMachineIsNotCreatedWithIOPSBeyondItsStorageProfile(t *testing.T) {
	model := vcdsim.K8sTenant()
	profiles := model.Orgs[1].VDCs[0].StorageProfiles
	limitedProfiles(profiles)
	profiles[0].IOPS.DiskMax = 1000
	w := controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model},
		controllertest.NewMachine("md-0", withIOPS)...)
	w.Ready()

	w.EventuallyMachine("md-0", infrav1.PlacementReadyCondition, infrav1.DiskIOPSInvalidReason)

	m := w.VCDMachine("md-0")
	w.Expect(conditions.GetMessage(m, infrav1.PlacementReadyCondition)).To(And(
		ContainSubstring("spec.diskIOPS is 1200"), ContainSubstring("allows 1000")))
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
	m.Spec.DiskIOPS = 1000
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Ready("md-0")
	w.Expect(iopsOf(w)).To(Equal([]int64{1000, 700, 2500}))
}

func TestAMachineWithAVGPUPolicy(t *testing.T) {
	model := vcdsim.K8sTenant()
	model.Policies = append(model.Policies, vcdsim.ComputePolicy{
		Name:      "gpu",
		Placement: true,
		CPUs:      8,
		MemoryMiB: 32 << 10,
		Fields:    map[string]any{"isVgpuPolicy": true},
	})
	vdc := &model.Orgs[1].VDCs[0]
	vdc.Policies = append(vdc.Policies, "gpu")
	w := controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model},
		controllertest.NewMachine("md-0", func(m *infrav1.VCDMachine) {
			m.Spec.PlacementPolicy = "gpu"
			m.Spec.SizingPolicy = "small"
		})...)
	w.Ready()

	w.EventuallyMachine("md-0", infrav1.PlacementReadyCondition, infrav1.PlacementInvalidReason)

	m := w.VCDMachine("md-0")
	w.Expect(conditions.GetMessage(m, infrav1.PlacementReadyCondition)).To(And(
		ContainSubstring("placement policy gpu also sets the size of VMs"), ContainSubstring("remove spec.sizingPolicy")))
	m.Spec.SizingPolicy = ""
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Ready("md-0")
	w.Expect(w.Sim.State().VMs[0].PlacementPolicyID).NotTo(BeEmpty())
}
