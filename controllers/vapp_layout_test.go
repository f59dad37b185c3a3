package controllers

import (
	"context"
	"strings"
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	composeCall   = "POST /api/vdc/action/composeVApp"
	recomposeCall = "POST /api/vApp/vapp/action/recomposeVApp"
)

// setLayout changes the layout of the cluster, which has no machines yet.
func (w *world) setLayout(layout infrav1.VAppLayout) {
	c := w.vcdCluster()
	c.Spec.VApp.Layout = layout
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
}

// initialize says that the control plane of the workload cluster is initialized.
func (w *world) initialize() {
	c := &clusterv1.Cluster{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: testCluster}, c)).To(Succeed())
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
}

// daemonSet returns one of a workload cluster.
func daemonSet(image string) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: meta("csi-vcd-nodeplugin")}
	d.Namespace = "kube-system"
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "registry.example.com/sidecar:v1"}, {Name: "b", Image: image}}
	return d
}

func machines(names ...string) []client.Object {
	var objects []client.Object
	for _, name := range names {
		objects = append(objects, testMachine(name)...)
	}
	return objects
}

// composeForeign makes a vApp by hand.
func (w *world) composeForeign(name string) {
	vdc := w.vcdCluster().Status.OVDC.ID
	w.person().post("/api/vdc/"+vdc[strings.LastIndex(vdc, ":")+1:]+"/action/composeVApp", `<ComposeVAppParams `+vcloud+` name="`+name+`"/>`)
	w.Eventually(func() []vcdsim.VApp { return w.sim.State().VApps }, patience, "5ms").Should(ContainElement(HaveField("Name", name)))
}

// addForeign adds a VM to a vApp by hand.
func (w *world) addForeign(vApp, name string) {
	var into, source string
	for _, v := range w.sim.State().VApps {
		if v.Name == vApp {
			into = v.ID
		}
	}
	for _, org := range w.sim.State().Model.Orgs {
		for _, catalog := range org.Catalogs {
			source = catalog.Templates[0].VMs[0].ID
		}
	}
	w.person().post("/api/vApp/vapp-"+into+"/action/recomposeVApp", `<RecomposeVAppParams `+vcloud+`><SourcedItem><Source href="`+w.sim.URL()+
		`/api/vAppTemplate/vm-`+source+`"/><VmGeneralParams><Name>`+name+`</Name></VmGeneralParams></SourcedItem><AllEULAsAccepted>true</AllEULAsAccepted></RecomposeVAppParams>`)
	w.Eventually(func() []vcdsim.VM { return w.sim.State().VMs }, patience, "5ms").Should(ContainElement(HaveField("Name", name)))
}

func TestMachinesThatWaitTogetherAreAddedByOneRequest(t *testing.T) {
	t.Parallel()
	for _, layout := range []infrav1.VAppLayout{infrav1.VAppPerFailureDomain, infrav1.VAppPerCluster} {
		t.Run(string(layout), func(t *testing.T) {
			w := newWorld(t, machines("first", "a", "b", "c")...)
			w.setLayout(layout)
			w.ready("first")
			w.machine.Gather = 2 * time.Second

			for _, name := range []string{"a", "b", "c"} {
				w.eventuallyMachine(name, infrav1.PlacementReadyCondition, infrav1.ReadyReason)
			}
			w.ready("a", "b", "c")

			w.Expect(w.sim.Counters()).To(And(HaveKeyWithValue(composeCall, 1), HaveKeyWithValue(recomposeCall, 1)))
			w.Expect(w.sim.State().VApps).To(ConsistOf(HaveField("Name", testCluster)))
			w.Expect(w.sim.State().VMs).To(HaveLen(4))
		})
	}
}

func TestMachinesWithVAppsOfTheirOwnAreCreatedInParallel(t *testing.T) {
	w, _ := newWorldThatStandsStill(t, machines("a", "b", "c")...)
	w.setLayout(infrav1.VAppPerMachine)
	w.machine.Gather = time.Hour
	w.ready()

	for _, name := range []string{"a", "b", "c"} {
		w.eventuallyMachine(name, infrav1.VAppReadyCondition, infrav1.TaskRunningReason)
	}

	w.Expect(w.sim.Counters()).To(HaveKeyWithValue(composeCall, 3))
	w.Expect(w.sim.State().Tasks).To(And(HaveLen(3), HaveEach(HaveField("Status", vcdsim.TaskRunning))))
}

func TestMachinesTakeVAppsOfTheirOwnWithThem(t *testing.T) {
	w := newWorld(t, machines("a", "b")...)
	w.setLayout(infrav1.VAppPerMachine)
	w.ready("a", "b")
	w.Expect(w.sim.State().VApps).To(ConsistOf(HaveField("Name", "a"), HaveField("Name", "b")))
	w.deleteMachine("a")
	w.deleteMachine("b")
	w.sim.ResetCounters()

	w.deleteCluster()
	w.Expect(w.sim.Counters()).To(HaveKeyWithValue("GET /api/query type=disk", 1))
	w.Expect(w.sim.Counters()).NotTo(HaveKey(ContainSubstring("vApp")), "machines took their vApps with them")
	w.Expect(w.sim.State().VApps).To(BeEmpty())
}

func TestForeignVAppOfOurNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, layout := range []infrav1.VAppLayout{infrav1.VAppPerFailureDomain, infrav1.VAppPerCluster, infrav1.VAppPerMachine} {
		t.Run(string(layout), func(t *testing.T) {
			name := testCluster
			if layout == infrav1.VAppPerMachine {
				name = "cp-0"
			}
			w := newWorld(t, machines("cp-0")...)
			w.setLayout(layout)
			w.ready()
			w.composeForeign(name)
			writes := w.writes()

			w.eventuallyMachine("cp-0", infrav1.VAppReadyCondition, infrav1.NameConflictReason)
			w.Expect(w.sim.State().VMs).To(BeEmpty())
			w.deleteMachine("cp-0")
			w.deleteCluster()

			w.Expect(w.writes()).To(Equal(writes))
			w.Expect(w.sim.State().VApps).To(ConsistOf(HaveField("Name", name)))
		})
	}
}

func TestDriversThatNeedOneVAppForbidOthers(t *testing.T) {
	w := newWorld(t, machines("cp-0", "md-0")...)
	w.setLayout(infrav1.VAppPerMachine)
	w.ready("cp-0")
	w.initialize()

	w.eventuallyMachine("md-0", infrav1.VAppReadyCondition, infrav1.WorkloadClusterUnreachableReason)
	w.Expect(conditions.IsUnknown(w.vcdMachine("md-0"), infrav1.VAppReadyCondition)).To(BeTrue())
	w.ready("cp-0")

	driver := daemonSet("registry.example.com/vmware/cloud-director-named-disk-csi-driver:1.6.0@sha256:0123")
	w.workload = fakeClient(driver)
	w.later(2 * driversRetry)
	w.eventuallyMachine("md-0", infrav1.VAppReadyCondition, infrav1.LegacyDriverInstalledReason)
	w.Expect(conditions.GetMessage(w.vcdMachine("md-0"), infrav1.VAppReadyCondition)).To(ContainSubstring("cloud-director-named-disk-csi-driver:1.6.0"))
	w.eventuallyCluster(infrav1.VAppLayoutReadyCondition, infrav1.LegacyDriverInstalledReason)
	w.Expect(w.sim.State().VMs).To(HaveLen(1))
	w.machineReady("cp-0")

	w.Expect(w.workload.Delete(w.ctx, driver)).To(Succeed())
	w.later(4 * driversRetry)
	w.ready("md-0")
}

// machineReady makes sure that a machine is ready, whatever its cluster is.
func (w *world) machineReady(name string) {
	w.eventuallyMachine(name, clusterv1.ReadyCondition, infrav1.ReadyReason)
}

// countingReader counts lists, and refuses them while it is down.
type countingReader struct {
	client.Reader
	lists int
	down  error
}

func (r *countingReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r.lists++
	if r.down != nil {
		return r.down
	}
	return r.Reader.List(ctx, list, opts...)
}

func TestWorkloadClustersAreLookedAtSeldom(t *testing.T) {
	g := NewWithT(t)
	workload := &countingReader{Reader: fakeClient()}
	drivers := NewDrivers(func(context.Context, client.ObjectKey) (client.Reader, error) { return workload, nil })
	cluster := testCAPICluster()
	now := time.Now()

	_, known := drivers.in(t.Context(), cluster, now)
	g.Expect(known).To(BeTrue(), "nothing runs before the control plane does")
	g.Expect(workload.lists).To(BeZero())

	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	for range 5 {
		_, known = drivers.in(t.Context(), cluster, now.Add(driversAge-time.Second))
	}
	g.Expect(known).To(BeTrue())
	g.Expect(workload.lists).To(Equal(3), "one look is three lists")

	workload.down = context.DeadlineExceeded
	_, known = drivers.in(t.Context(), cluster, now.Add(3*driversAge))
	g.Expect(known).To(BeTrue(), "the last answer holds for a while")
	_, known = drivers.in(t.Context(), cluster, now.Add(driversAge+driversMemory))
	g.Expect(known).To(BeFalse())
	g.Expect(workload.lists).To(Equal(5))
}

func TestImagesBoundToOneVApp(t *testing.T) {
	const csi, ccm = "projects.registry.vmware.com/vmware-cloud-director/cloud-director-named-disk-csi-driver", "mirror:5000/x/cloud-provider-for-cloud-director"
	tests := []struct {
		name, image string
		want        bool
	}{
		{"the last CSI driver of VMware", csi + ":1.6.0", true},
		{"an older one", csi + ":1.3.2", true},
		{"a build of it", csi + ":1.6.1-beta.3", true},
		{"a successor", csi + ":1.7.0", false},
		{"a digest says nothing", csi + "@sha256:0123", true},
		{"a branch says nothing", csi + ":main", true},
		{"the last cloud provider of VMware", ccm + ":1.6.1", true},
		{"its successor", ccm + ":v1.6.2", false},
		{"a later major version", ccm + ":v2", false},
		{"something else", "registry.k8s.io/sig-storage/csi-attacher:v4.0.0", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := boundToVApp(tt.image)
			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}

func TestVAppWithForeignVMsIsKept(t *testing.T) {
	w := newWorld(t, machines("cp-0", "theirs")...)
	w.ready("cp-0", "theirs")
	w.sim.Edit(func(e *vcdsim.Editor) { e.VM("theirs").Description = "somebody's" })
	w.deleteMachine("cp-0")
	theirs := w.vcdMachine("theirs")
	theirs.Finalizers = nil
	w.Expect(w.client.Update(w.ctx, theirs)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, theirs)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())

	w.eventuallyCluster(infrav1.VAppDeletedCondition, infrav1.VAppNotEmptyReason)
	w.Expect(conditions.GetMessage(w.vcdCluster(), infrav1.VAppDeletedCondition)).To(And(ContainSubstring("delete theirs"), ContainSubstring(infrav1.KeepVAppAnnotation)))

	c := w.vcdCluster()
	annotate(c, infrav1.KeepVAppAnnotation, "true")
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.Expect(w.isClusterGone()).To(BeTrue())
	w.Expect(w.sim.State().VMs).To(ConsistOf(And(HaveField("Name", "theirs"), HaveField("PoweredOn", true))))
	w.Expect(w.eventTexts()).To(ContainElement(And(ContainSubstring("VAppKept"), ContainSubstring("theirs"))))
}

func TestVAppOfAMachineWithForeignVMsIsKept(t *testing.T) {
	w := newWorld(t, machines("md-0")...)
	w.setLayout(infrav1.VAppPerMachine)
	w.ready("md-0")
	w.addForeign("md-0", "theirs")
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("md-0"))).To(Succeed())

	w.eventuallyMachine("md-0", infrav1.VAppDeletedCondition, infrav1.VAppNotEmptyReason)
	w.Expect(conditions.GetMessage(w.vcdMachine("md-0"), infrav1.VAppDeletedCondition)).To(ContainSubstring("delete theirs"))

	m := w.vcdMachine("md-0")
	annotate(m, infrav1.KeepVAppAnnotation, "true")
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	w.Expect(w.isGone("md-0")).To(BeTrue())
	w.Expect(w.sim.State().VMs).To(ConsistOf(HaveField("Name", "theirs")))
}
