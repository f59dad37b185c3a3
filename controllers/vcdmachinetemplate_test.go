package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func testTemplate(mods ...func(*infrav1.VCDMachineTemplate)) *infrav1.VCDMachineTemplate {
	t := &infrav1.VCDMachineTemplate{ObjectMeta: meta("md-0")}
	t.Spec.Template.Spec = infrav1.VCDMachineSpec{Catalog: "kubernetes", Template: "ubuntu-2404-kube-v1.36.3", SizingPolicy: "small"}
	for _, mod := range mods {
		mod(t)
	}
	return t
}

func (w *world) reconcileTemplate() (*infrav1.VCDMachineTemplate, ctrl.Result) {
	key := client.ObjectKey{Namespace: testNamespace, Name: "md-0"}
	res, err := reconcile.AsReconciler(w.client, w.template).Reconcile(w.ctx, ctrl.Request{NamespacedName: key})
	w.Expect(err).NotTo(HaveOccurred())
	t := &infrav1.VCDMachineTemplate{}
	w.Expect(w.client.Get(w.ctx, key, t)).To(Succeed())
	return t, res
}

// sizes returns a list of resources in words.
func sizes(list corev1.ResourceList) map[string]string {
	words := map[string]string{}
	for name, quantity := range list {
		words[string(name)] = quantity.String()
	}
	return words
}

func TestCapacityIsThatOfPolicyTemplateAndDisk(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		mod  func(*infrav1.VCDMachineTemplate)
		want map[string]string
	}{
		{"a sizing policy", func(*infrav1.VCDMachineTemplate) {}, map[string]string{"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"}},
		{"another and a larger disk", func(t *infrav1.VCDMachineTemplate) {
			t.Spec.Template.Spec.SizingPolicy, t.Spec.Template.Spec.DiskSize = "large", ptr.To(resource.MustParse("40Gi"))
		}, map[string]string{"cpu": "4", "memory": "16Gi", "ephemeral-storage": "40Gi"}},
		{"the image's own sizes", func(t *infrav1.VCDMachineTemplate) { t.Spec.Template.Spec.SizingPolicy = "" }, map[string]string{"cpu": "2", "memory": "2Gi", "ephemeral-storage": "20Gi"}},
		{"no label but an owner", func(t *infrav1.VCDMachineTemplate) {
			t.Labels = nil
			t.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "gone", UID: "a"},
				{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: testCluster, UID: "uid-of-" + testCluster},
			}
		}, map[string]string{"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"}},
		{"neither, where only one place is known", func(t *infrav1.VCDMachineTemplate) { t.Labels = nil }, map[string]string{"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, testTemplate(tt.mod))

			got, res := w.reconcileTemplate()

			w.Expect(sizes(got.Status.Capacity)).To(Equal(tt.want))
			w.Expect(got.Status.NodeInfo).To(Equal(infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}))
			w.Expect(conditions.IsTrue(got, clusterv1.ReadyCondition)).To(BeTrue())
			w.Expect(res.RequeueAfter).To(BeNumerically(">", capacityAge-time.Minute))
		})
	}
}

func TestDefaultSizingOfTheVDCCounts(t *testing.T) {
	w := newWorld(t, testTemplate(func(t *infrav1.VCDMachineTemplate) { t.Spec.Template.Spec.SizingPolicy = "" }))
	w.sim.Edit(func(e *vcdsim.Editor) {
		for i := range e.Model.Orgs {
			for j := range e.Model.Orgs[i].VDCs {
				e.Model.Orgs[i].VDCs[j].Policies = []string{"large", "small"}
			}
		}
	})

	got, _ := w.reconcileTemplate()

	w.Expect(sizes(got.Status.Capacity)).To(HaveKeyWithValue("cpu", "4"))
}

func TestCapacityThatIsKnownCostsNoCall(t *testing.T) {
	w := newWorld(t, testTemplate())
	got, _ := w.reconcileTemplate()
	w.sim.ResetCounters()

	for range 5 {
		again, _ := w.reconcileTemplate()
		w.Expect(again.ResourceVersion).To(Equal(got.ResourceVersion))
	}
	w.Expect(w.sim.Counters()).To(BeEmpty())

	w.template.Now = func() time.Time { return time.Now().Add(2 * capacityAge) }
	w.reconcileTemplate()
	w.Expect(w.sim.Counters()).NotTo(BeEmpty(), "what a template names may change in VCD")
}

func TestWhyTheCapacityIsNotKnown(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		mod     func(*infrav1.VCDMachineTemplate)
		prepare func(*world)
		reason  string
		message string
	}{
		{"no such template", func(t *infrav1.VCDMachineTemplate) { t.Spec.Template.Spec.Template = "nope" }, nil, infrav1.TemplateNotFoundReason, "spec.template"},
		{"no such policy", func(t *infrav1.VCDMachineTemplate) { t.Spec.Template.Spec.SizingPolicy = "nope" }, nil, infrav1.SizingPolicyNotFoundReason, "spec.sizingPolicy"},
		{"no cluster", func(t *infrav1.VCDMachineTemplate) { t.Labels = nil }, func(w *world) {
			w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
		}, infrav1.ClusterUnknownReason, clusterv1.ClusterNameLabel},
		{"several places", func(t *infrav1.VCDMachineTemplate) { t.Labels = nil }, func(w *world) {
			for _, o := range otherCluster(w.sim, "x") {
				if c, ok := o.(*infrav1.VCDCluster); ok {
					c.Spec.OVDC = "another"
					w.Expect(w.client.Create(w.ctx, c)).To(Succeed())
				}
			}
		}, infrav1.ClusterUnknownReason, "different places"},
		{"no identity", func(*infrav1.VCDMachineTemplate) {}, func(w *world) {
			w.Expect(w.client.Delete(w.ctx, testIdentity(""))).To(Succeed())
		}, infrav1.IdentityNotFoundReason, "tenant"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, testTemplate(tt.mod))
			if tt.prepare != nil {
				tt.prepare(w)
			}

			got, res := w.reconcileTemplate()

			c := conditions.Get(got, infrav1.CapacityKnownCondition)
			w.Expect(c.Reason).To(Equal(tt.reason), c.Message)
			w.Expect(c.Message).To(ContainSubstring(tt.message))
			w.Expect(got.Status.Capacity).To(BeEmpty())
			w.Expect(conditions.GetReason(got, clusterv1.ReadyCondition)).To(Equal(tt.reason))
			w.Expect(res.RequeueAfter).To(BeNumerically(">=", clusterRetry))
		})
	}
}

func TestTemplatesOfPausedClustersAreLeftAlone(t *testing.T) {
	w := newWorld(t, testTemplate())
	cluster := &clusterv1.Cluster{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: testCluster}, cluster)).To(Succeed())
	cluster.Spec.Paused = ptr.To(true)
	w.Expect(w.client.Update(w.ctx, cluster)).To(Succeed())

	got, _ := w.reconcileTemplate()

	w.Expect(got.Status).To(BeZero())
	w.Expect(w.sim.Requests()).To(BeEmpty())
}

func TestNodesThatImagesBecome(t *testing.T) {
	tests := []struct {
		guestOS string
		want    infrav1.NodeInfo
	}{
		{"ubuntu64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}},
		{"other5xLinux64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}},
		{"vmwarePhoton64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}},
		{"arm-ubuntu-64", infrav1.NodeInfo{Architecture: "arm64", OperatingSystem: "linux"}},
		{"windows2019srvNext_64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "windows"}},
		{"darwin19_64Guest", infrav1.NodeInfo{Architecture: "amd64"}},
		{"ubuntuGuest", infrav1.NodeInfo{OperatingSystem: "linux"}},
		{"", infrav1.NodeInfo{}},
	}
	for _, tt := range tests {
		t.Run(tt.guestOS, func(t *testing.T) {
			NewWithT(t).Expect(nodeInfoOf(tt.guestOS)).To(Equal(tt.want))
		})
	}
}

func TestCapacityThatNobodyTellsIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	g.Expect(capacityOf(vcd.Template{}, vcd.Policy{}, 0)).To(BeEmpty())
	g.Expect(sizes(capacityOf(vcd.Template{CPUs: 2, MemoryMiB: 2048}, vcd.Policy{CPUs: 8}, 0))).To(Equal(map[string]string{"cpu": "8", "memory": "2Gi"}))
}
