// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// annotate sets annotations of the VCDCluster.
func annotate(w *controllertest.Env, annotations map[string]string) {
	c := w.VCDCluster()
	for key, value := range annotations {
		notes.Set(c, key, value)
	}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

func keepVApp(w *controllertest.Env) {
	annotate(w, map[string]string{infrav1.KeepVAppAnnotation: "true"})
}

// addSecondVApp extends the cluster to a second vApp, which is empty.
func addSecondVApp(w *controllertest.Env) {
	name := controllertest.ClusterName + "-2"
	vms := w.Sim.State().VMs
	w.Sim.Edit(func(e *vcdsim.Editor) {
		first := e.VApp(controllertest.ClusterName)
		second := e.CopyVApp(first, name)
		second.Description = first.Description
		second.Status = vcdsim.Resolved
		for _, vm := range vms {
			if vm.VAppName == controllertest.ClusterName {
				e.DeleteVM(e.VM(name + "-" + vm.Name))
			}
		}
		e.SetOwner(second, "capvcd")
	})
	w.Record(func(r *infrav1.VCDClusterRecordedState) { r.VAppCount = 2 })
}

// TestAUserCanKeepTheVAppAtAnyPointOfTheDeletion blocks the deletion of a vApp forever.
func TestAUserCanKeepTheVAppAtAnyPointOfTheDeletion(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		spoil  func(*controllertest.Env)
		reason string
	}{
		{
			name: "while VCD is permanently unavailable",
			spoil: func(w *controllertest.Env) {
				w.Sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable})
			},
			reason: infrav1.SiteUnreachableReason,
		},
		{
			name: "without an identity",
			spoil: func(w *controllertest.Env) {
				w.Expect(w.Client.Delete(w.Ctx, controllertest.NewIdentity(""))).To(Succeed())
			},
			reason: infrav1.IdentityNotFoundReason,
		},
		{
			name: "while the vApp is unreadable",
			spoil: func(w *controllertest.Env) {
				w.Sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=vApp", Status: http.StatusForbidden})
			},
			reason: infrav1.ForbiddenReason,
		},
		{
			name: "while the right to delete the vApp is missing",
			spoil: func(w *controllertest.Env) {
				w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST /api/vApp*", Status: http.StatusForbidden})
				w.Sim.Faults().Add(vcdsim.Fault{Operation: "DELETE /api/vApp*", Status: http.StatusForbidden})
			},
			reason: infrav1.ForbiddenReason,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
			w.Ready("cp-0")
			w.DeleteMachine("cp-0")
			annotate(w, map[string]string{infrav1.KeepLoadBalancersAnnotation: "true"})
			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
			tt.spoil(w)
			w.EventuallyCluster(infrav1.VAppDeletedCondition, tt.reason)
			w.Expect(conditions.GetMessage(w.VCDCluster(),
				infrav1.VAppDeletedCondition)).To(ContainSubstring(infrav1.KeepVAppAnnotation + "=true"))

			keepVApp(w)

			w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
			w.Expect(w.Sim.State().VApps).To(HaveLen(1))
			w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("VAppRetained"),
				ContainSubstring(controllertest.ClusterName))))
		})
	}
}

func TestAKeptVAppKeepsAVMThatWasDeclaredGone(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.Edit("cp-0", func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) })
	m := w.VCDMachine("cp-0")
	notes.Set(m, infrav1.VMGoneAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.DeleteMachine("cp-0")
	keepVApp(w)

	w.DeleteCluster()

	w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("Name", "cp-0")))
	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("VAppRetained"), ContainSubstring("cp-0"))))
}

func TestDisksAreKeptWhileAnyVAppIsKept(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskDelete)
	w.AddForeign(controllertest.ClusterName, "theirs")
	addSecondVApp(w)
	w.DeleteMachine("other")
	keepVApp(w)

	w.DeleteCluster()

	w.Expect(w.Sim.State().VApps).To(ConsistOf(HaveField("Name", controllertest.ClusterName)),
		"the second one is deleted")
	w.Expect(w.Sim.State().Disks).To(HaveLen(6))
	w.Expect(w.EventTexts()).To(ContainElements(
		And(ContainSubstring("VAppRetained"), ContainSubstring("theirs")), ContainSubstring("DisksRetained")))
}

// TestTheDeletionOfEachVAppIsProved deletes two vApps one by one, and restarts the manager after each task. VCD's task
// log does not show them.
func TestTheDeletionOfEachVAppIsProved(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskDelete)
	addSecondVApp(w)
	w.DeleteMachine("other")
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=task", Status: http.StatusForbidden})

	w.DeleteCluster()

	w.Expect(w.Sim.State().VApps).To(BeEmpty())
	w.Expect(diskNames(w)).NotTo(ContainElement("marked"))
}

// TestAForeignVAppDoesNotHideAnOwnedVApp renames the vApp of a cluster and revokes the access to it, while a foreign
// vApp has its former name.
func TestAForeignVAppDoesNotHideAnOwnedVApp(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.DeleteMachine("cp-0")
	w.Hide(controllertest.ClusterName, true)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VApp(controllertest.ClusterName).Name = "renamed" })
	w.ComposeForeign(controllertest.ClusterName)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

	for _, d := range []time.Duration{0, 62 * time.Second, 48 * time.Hour} {
		w.Later(d)
		w.Expect(w.IsClusterGone()).To(BeFalse())
	}

	w.Expect(conditions.GetReason(w.VCDCluster(),
		infrav1.VAppDeletedCondition)).To(Equal(infrav1.VAppUnverifiedReason))
}

// TestOneDeletedVAppProvesNothingAboutOthers manually records that a vApp was deleted.
func TestOneDeletedVAppProvesNothingAboutOthers(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskDelete)
	w.DeleteMachine("other")
	w.Hide(controllertest.ClusterName, true)
	w.Record(func(r *infrav1.VCDClusterRecordedState) {
		r.DeletedVAppIDs = []string{"urn:vcloud:vapp:11111111-2222-3333-4444-555555555555"}
		r.VAppCount = 0
		r.VAppIDs = nil
	})

	w.DeleteCluster()

	w.Expect(w.Sim.State().Disks).To(HaveLen(6))
}

func TestKeepingTheVAppDoesNotWaitForAHangingDeletion(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.DeleteMachine("cp-0")
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "vdcDeleteVapp", StickTask: true})
	annotate(w, map[string]string{infrav1.KeepLoadBalancersAnnotation: "true"})
	keepVApp(w)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.EventuallyCluster(infrav1.VAppDeletedCondition, infrav1.TaskRunningReason)
	w.Expect(w.IsClusterGone()).To(BeFalse(), "the deletion may finish")

	w.Later(15 * time.Minute)

	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Sim.State().VApps).To(HaveLen(1))
	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("VAppRetained"), ContainSubstring("10m0s"))))
}
