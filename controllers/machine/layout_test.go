// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	composeCall   = "POST /api/vdc/action/composeVApp"
	recomposeCall = "POST /api/vApp/vapp/action/recomposeVApp"
)

// initialize marks the control plane of the workload cluster as initialized.
func initialize(w *controllertest.Env) {
	c := &clusterv1.Cluster{}
	w.Expect(w.Client.Get(w.Ctx,
		client.ObjectKey{Namespace: controllertest.Namespace, Name: controllertest.ClusterName}, c)).To(Succeed())
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// daemonSet returns a DaemonSet of a workload cluster.
func daemonSet(image string) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: controllertest.Meta("csi-vcd-nodeplugin")}
	d.Namespace = "kube-system"
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "a", Image: "registry.example.com/sidecar:v1"},
		{Name: "b", Image: image},
	}
	return d
}

func TestWaitingMachinesAreAddedByOneRequest(t *testing.T) {
	t.Parallel()
	for _, layout := range []infrav1.VAppLayout{infrav1.VAppPerFailureDomain, infrav1.VAppPerCluster} {
		t.Run(string(layout), func(t *testing.T) {
			w := controllertest.New(t, controllertest.Machines("first", "a", "b", "c")...)
			w.SetLayout(layout)
			w.Ready("first")
			w.Machine.Gather = 2 * time.Second

			for _, name := range []string{"a", "b", "c"} {
				w.EventuallyMachine(name, infrav1.PlacementReadyCondition, infrav1.ReadyReason)
			}
			w.Ready("a", "b", "c")

			w.Expect(w.Sim.Counters()).To(And(HaveKeyWithValue(composeCall, 1), HaveKeyWithValue(recomposeCall, 1)))
			w.Expect(w.Sim.State().VApps).To(ConsistOf(HaveField("Name", controllertest.ClusterName)))
			w.Expect(w.Sim.State().VMs).To(HaveLen(4))
		})
	}
}

func TestMachinesWithTheirOwnVAppsAreCreatedInParallel(t *testing.T) {
	w, _ := controllertest.NewStandingStill(t, controllertest.Machines("a", "b", "c")...)
	w.SetLayout(infrav1.VAppPerMachine)
	w.Machine.Gather = time.Hour
	w.Ready()

	for _, name := range []string{"a", "b", "c"} {
		w.EventuallyMachine(name, infrav1.VAppReadyCondition, infrav1.TaskRunningReason)
	}

	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(composeCall, 3))
	w.Expect(w.Sim.State().Tasks).To(And(HaveLen(3), HaveEach(HaveField("Status", vcdsim.TaskRunning))))
}

func TestMachinesWithTheirOwnVAppsDeleteThem(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b")...)
	w.SetLayout(infrav1.VAppPerMachine)
	w.Ready("a", "b")
	w.Expect(w.Sim.State().VApps).To(ConsistOf(HaveField("Name", "a"), HaveField("Name", "b")))
	w.DeleteMachine("a")
	w.DeleteMachine("b")
	w.Sim.ResetCounters()

	w.DeleteCluster()
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue("GET /api/query type=disk", 1))
	w.Expect(w.Sim.Counters()).NotTo(HaveKey(ContainSubstring("vApp")), "machines deleted their vApps")
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

func TestForeignVAppWithTheSameNameIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, layout := range []infrav1.VAppLayout{
		infrav1.VAppPerFailureDomain, infrav1.VAppPerCluster,
		infrav1.VAppPerMachine,
	} {
		t.Run(string(layout), func(t *testing.T) {
			name := controllertest.ClusterName
			if layout == infrav1.VAppPerMachine {
				name = "cp-0"
			}
			w := controllertest.New(t, controllertest.Machines("cp-0")...)
			w.SetLayout(layout)
			w.Ready()
			w.ComposeForeign(name)
			writes := w.Writes()

			w.EventuallyMachine("cp-0", infrav1.VAppReadyCondition, infrav1.NameConflictReason)
			w.Expect(w.Sim.State().VMs).To(BeEmpty())
			w.DeleteMachine("cp-0")
			w.DeleteCluster()

			w.Expect(w.Writes()).To(Equal(writes))
			w.Expect(w.Sim.State().VApps).To(ConsistOf(HaveField("Name", name)))
		})
	}
}

func TestInvisibleVAppWithTheSameNameIsReported(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("cp-0")...)
	w.Ready()
	w.ComposeForeign(controllertest.ClusterName)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.Share(e.VApp(controllertest.ClusterName), "capvcd", "") })

	w.EventuallyMachine("cp-0", infrav1.VAppReadyCondition, infrav1.NameConflictReason)
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}

func TestDriversLimitedToOneVAppForbidOtherLayouts(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("cp-0", "md-0")...)
	w.SetLayout(infrav1.VAppPerMachine)
	w.Ready("cp-0")
	initialize(w)

	w.EventuallyMachine("md-0", infrav1.VAppReadyCondition, infrav1.WorkloadClusterUnreachableReason)
	w.Expect(conditions.IsUnknown(w.VCDMachine("md-0"), infrav1.VAppReadyCondition)).To(BeTrue())
	w.Ready("cp-0")

	driver := daemonSet("registry.example.com/vmware/cloud-director-named-disk-csi-driver:1.6.0@sha256:0123")
	w.Workload = controllertest.NewClient(driver)
	w.Later(2 * vapp.DriversRetry)
	w.EventuallyMachine("md-0", infrav1.VAppReadyCondition, infrav1.LegacyDriverInstalledReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("md-0"),
		infrav1.VAppReadyCondition)).To(ContainSubstring("cloud-director-named-disk-csi-driver:1.6.0"))
	w.EventuallyCluster(infrav1.VAppLayoutReadyCondition, infrav1.LegacyDriverInstalledReason)
	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
	machineReady(w, "cp-0")

	w.Expect(w.Workload.Delete(w.Ctx, driver)).To(Succeed())
	w.Later(4 * vapp.DriversRetry)
	w.Ready("md-0")
}

// machineReady checks that a machine is ready, regardless of its cluster.
func machineReady(w *controllertest.Env, name string) {
	w.EventuallyMachine(name, clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestVAppWithForeignVMsIsKept(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("cp-0", "theirs")...)
	w.Ready("cp-0", "theirs")
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("theirs").Description = "another owner's" })
	w.DeleteMachine("cp-0")
	theirs := w.VCDMachine("theirs")
	theirs.Finalizers = nil
	w.Expect(w.Client.Update(w.Ctx, theirs)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, theirs)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

	w.EventuallyCluster(infrav1.VAppDeletedCondition, infrav1.VAppNotEmptyReason)
	w.Expect(conditions.GetMessage(w.VCDCluster(),
		infrav1.VAppDeletedCondition)).To(And(ContainSubstring("delete theirs"),
		ContainSubstring(infrav1.KeepVAppAnnotation)))

	c := w.VCDCluster()
	notes.Set(c, infrav1.KeepVAppAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Expect(w.IsClusterGone()).To(BeTrue())
	w.Expect(w.Sim.State().VMs).To(ConsistOf(And(HaveField("Name", "theirs"), HaveField("PoweredOn", true))))
	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("VAppRetained"), ContainSubstring("theirs"))))
}

func TestVAppOfAMachineWithForeignVMsIsKept(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("md-0")...)
	w.SetLayout(infrav1.VAppPerMachine)
	w.Ready("md-0")
	w.AddForeign("md-0", "theirs")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("md-0"))).To(Succeed())

	w.EventuallyMachine("md-0", infrav1.VAppDeletedCondition, infrav1.VAppNotEmptyReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("md-0"),
		infrav1.VAppDeletedCondition)).To(ContainSubstring("delete theirs"))

	m := w.VCDMachine("md-0")
	notes.Set(m, infrav1.KeepVAppAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(isGone(w, "md-0")).To(BeTrue())
	w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("Name", "theirs")))
}

func TestAUserCanKeepTheVAppOfAMachineWhileVCDIsUnreachable(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("md-0")...)
	w.SetLayout(infrav1.VAppPerMachine)
	w.Ready("md-0")
	m := w.VCDMachine("md-0")
	notes.Set(m, infrav1.VMGoneAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())
	w.Sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable})
	w.EventuallyMachine("md-0", infrav1.VAppDeletedCondition, infrav1.SiteUnreachableReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("md-0"),
		infrav1.VAppDeletedCondition)).To(ContainSubstring(infrav1.KeepVAppAnnotation + "=true"))

	m = w.VCDMachine("md-0")
	notes.Set(m, infrav1.KeepVAppAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())

	w.Expect(isGone(w, "md-0")).To(BeTrue())
	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("VAppRetained"), ContainSubstring("md-0"))))
}

func TestKeepingTheVAppOfAMachineDoesNotWaitForAHangingDeletion(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.SetLayout(infrav1.VAppPerMachine)
	w.Ready("cp-0")
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "vdcDeleteVapp", StickTask: true})
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())
	w.EventuallyMachine("cp-0", infrav1.VAppDeletedCondition, infrav1.TaskRunningReason)
	m := w.VCDMachine("cp-0")
	notes.Set(m, infrav1.KeepVAppAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.EventuallyMachine("cp-0", infrav1.VAppDeletedCondition, infrav1.EntityBusyReason)

	w.Later(15 * time.Minute)

	w.Expect(isGone(w, "cp-0")).To(BeTrue())
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("VAppRetained")))
}
