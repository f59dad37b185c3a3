// SPDX-License-Identifier: Apache-2.0

package machinetemplate_test

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machinetemplate"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func testTemplate(mods ...func(*infrav1.VCDMachineTemplate)) *infrav1.VCDMachineTemplate {
	t := &infrav1.VCDMachineTemplate{ObjectMeta: controllertest.Meta("md-0")}
	t.Spec.Template.Spec = infrav1.VCDMachineSpec{
		Catalog:      "kubernetes",
		Template:     "ubuntu-2404-kube-v1.36.3",
		SizingPolicy: "small",
	}
	for _, mod := range mods {
		mod(t)
	}
	return t
}

func reconcileTemplate(w *controllertest.Env) (*infrav1.VCDMachineTemplate, ctrl.Result) {
	key := client.ObjectKey{Namespace: controllertest.Namespace, Name: "md-0"}
	res, err := reconcile.AsReconciler(w.Client, w.Template).Reconcile(w.Ctx, ctrl.Request{NamespacedName: key})
	w.Expect(err).NotTo(HaveOccurred())
	t := &infrav1.VCDMachineTemplate{}
	w.Expect(w.Client.Get(w.Ctx, key, t)).To(Succeed())
	return t, res
}

// sizes formats a resource list as text.
func sizes(list corev1.ResourceList) map[string]string {
	words := map[string]string{}
	for name, quantity := range list {
		words[string(name)] = quantity.String()
	}
	return words
}

func TestCapacityComesFromPolicyTemplateAndDisk(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		mod  func(*infrav1.VCDMachineTemplate)
		want map[string]string
	}{
		{
			name: "a sizing policy",
			mod:  func(*infrav1.VCDMachineTemplate) {},
			want: map[string]string{"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"},
		},
		{
			name: "a selector",
			mod: func(t *infrav1.VCDMachineTemplate) {
				t.Spec.Template.Spec.Template = ""
				t.Spec.Template.Spec.TemplateSelector = &infrav1.TemplateSelector{NamePattern: "ubuntu-*-v{kubernetesVersion}"}
			},
			want: map[string]string{"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"},
		},
		{
			name: "another and larger disk",
			mod: func(t *infrav1.VCDMachineTemplate) {
				t.Spec.Template.Spec.SizingPolicy = "large"
				t.Spec.Template.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
			},
			want: map[string]string{"cpu": "4", "memory": "16Gi", "ephemeral-storage": "40Gi"},
		},
		{
			name: "the image's own sizes",
			mod:  func(t *infrav1.VCDMachineTemplate) { t.Spec.Template.Spec.SizingPolicy = "" },
			want: map[string]string{"cpu": "2", "memory": "2Gi", "ephemeral-storage": "20Gi"},
		},
		{
			name: "no label without its owner",
			mod: func(t *infrav1.VCDMachineTemplate) {
				t.Labels = nil
				t.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "gone", UID: "a"},
					{
						APIVersion: clusterv1.GroupVersion.String(),
						Kind:       "Cluster",
						Name:       controllertest.ClusterName,
						UID:        "uid-of-" + controllertest.ClusterName,
					},
				}
			},
			want: map[string]string{"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"},
		},
		{
			name: "neither, if only one location is known",
			mod:  func(t *infrav1.VCDMachineTemplate) { t.Labels = nil },
			want: map[string]string{"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, testTemplate(tt.mod))

			got, res := reconcileTemplate(w)

			w.Expect(sizes(got.Status.Capacity)).To(Equal(tt.want))
			w.Expect(got.Status.NodeInfo).To(Equal(infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}))
			w.Expect(conditions.IsTrue(got, clusterv1.ReadyCondition)).To(BeTrue())
			w.Expect(res.RequeueAfter).To(BeNumerically(">", machinetemplate.CapacityAge-time.Minute))
		})
	}
}

func TestCapacityInAClusterWithOnlyZones(t *testing.T) {
	w := controllertest.NewInZones(t, testTemplate(func(t *infrav1.VCDMachineTemplate) {
		t.Spec.Template.Spec.Catalog = "" // The network of the zone.
		t.Spec.Template.Spec.SizingPolicy = "large"
	}))
	c := w.VCDCluster()
	selected := c.Spec.FailureDomainSelector
	c.Spec.FailureDomainSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "zone"}}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	got, res := reconcileTemplate(w)
	w.Expect(conditions.GetReason(got, infrav1.CapacityKnownCondition)).To(Equal(infrav1.NoFailureDomainReason))
	w.Expect(res.RequeueAfter).To(BeNumerically(">=", machinetemplate.ClusterRetry))
	c.Spec.FailureDomainSelector = selected
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	got, _ = reconcileTemplate(w)

	w.Expect(conditions.GetMessage(got, infrav1.CapacityKnownCondition)).To(BeEmpty())
	w.Expect(sizes(got.Status.Capacity)).To(Equal(map[string]string{
		"cpu":               "4",
		"memory":            "16Gi",
		"ephemeral-storage": "20Gi",
	}))
}

func TestTheDefaultSizingPolicyOfTheVDCApplies(t *testing.T) {
	w := controllertest.New(t,
		testTemplate(func(t *infrav1.VCDMachineTemplate) { t.Spec.Template.Spec.SizingPolicy = "" }))
	w.Sim.Edit(func(e *vcdsim.Editor) {
		for i := range e.Model.Orgs {
			for j := range e.Model.Orgs[i].VDCs {
				e.Model.Orgs[i].VDCs[j].Policies = []string{"large", "small"}
			}
		}
	})

	got, _ := reconcileTemplate(w)

	w.Expect(sizes(got.Status.Capacity)).To(HaveKeyWithValue("cpu", "4"))
}

func TestKnownCapacityCausesNoRequests(t *testing.T) {
	w := controllertest.New(t, testTemplate())
	got, _ := reconcileTemplate(w)
	w.Sim.ResetCounters()

	for range 5 {
		again, _ := reconcileTemplate(w)
		w.Expect(again.ResourceVersion).To(Equal(got.ResourceVersion))
	}
	w.Expect(w.Sim.Counters()).To(BeEmpty())

	w.Template.Now = func() time.Time { return time.Now().Add(2 * machinetemplate.CapacityAge) }
	reconcileTemplate(w)
	w.Expect(w.Sim.Counters()).NotTo(BeEmpty(), "the contents of a template may change in VCD")
}

func TestReasonsForUnknownCapacity(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		mod     func(*infrav1.VCDMachineTemplate)
		prepare func(*controllertest.Env)
		reason  string
		message string
	}{
		{
			name:    "no such template",
			mod:     func(t *infrav1.VCDMachineTemplate) { t.Spec.Template.Spec.Template = "nope" },
			reason:  infrav1.TemplateNotFoundReason,
			message: ": create a new VCDMachineTemplate with another spec.template.spec.template and spec.template.spec.catalog, and set it in the infrastructureRef",
		},
		{
			name:    "no such policy",
			mod:     func(t *infrav1.VCDMachineTemplate) { t.Spec.Template.Spec.SizingPolicy = "nope" },
			reason:  infrav1.SizingPolicyNotFoundReason,
			message: "create a new VCDMachineTemplate with another spec.template.spec.sizingPolicy",
		},
		{
			name: "no cluster",
			mod:  func(t *infrav1.VCDMachineTemplate) { t.Labels = nil },
			prepare: func(w *controllertest.Env) {
				w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
			},
			reason:  infrav1.ClusterUnknownReason,
			message: clusterv1.ClusterNameLabel,
		},
		{
			name: "several locations",
			mod:  func(t *infrav1.VCDMachineTemplate) { t.Labels = nil },
			prepare: func(w *controllertest.Env) {
				for _, o := range controllertest.OtherCluster(w.Sim, "x") {
					if c, ok := o.(*infrav1.VCDCluster); ok {
						c.Spec.OVDC = "another"
						w.Expect(w.Client.Create(w.Ctx, c)).To(Succeed())
					}
				}
			},
			reason:  infrav1.ClusterUnknownReason,
			message: "differ in VDC or identity",
		},
		{
			name: "no identity",
			mod:  func(*infrav1.VCDMachineTemplate) {},
			prepare: func(w *controllertest.Env) {
				w.Expect(w.Client.Delete(w.Ctx, controllertest.NewIdentity(""))).To(Succeed())
			},
			reason:  infrav1.IdentityNotFoundReason,
			message: "tenant",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, testTemplate(tt.mod))
			if tt.prepare != nil {
				tt.prepare(w)
			}

			got, res := reconcileTemplate(w)

			c := conditions.Get(got, infrav1.CapacityKnownCondition)
			w.Expect(c.Reason).To(Equal(tt.reason), c.Message)
			w.Expect(c.Message).To(ContainSubstring(tt.message))
			w.Expect(got.Status.Capacity).To(BeEmpty())
			w.Expect(conditions.GetReason(got, clusterv1.ReadyCondition)).To(Equal(tt.reason))
			w.Expect(res.RequeueAfter).To(BeNumerically(">=", machinetemplate.ClusterRetry))
		})
	}
}

func TestTemplatesOfPausedClustersAreNotReconciled(t *testing.T) {
	w := controllertest.New(t, testTemplate())
	cluster := &clusterv1.Cluster{}
	w.Expect(w.Client.Get(w.Ctx,
		client.ObjectKey{Namespace: controllertest.Namespace, Name: controllertest.ClusterName}, cluster)).To(Succeed())
	cluster.Spec.Paused = ptr.To(true)
	w.Expect(w.Client.Update(w.Ctx, cluster)).To(Succeed())

	got, _ := reconcileTemplate(w)

	w.Expect(got.Status).To(BeZero())
	w.Expect(w.Sim.Requests()).To(BeEmpty())
}
