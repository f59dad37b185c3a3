// SPDX-License-Identifier: Apache-2.0

package podproxy

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
)

// A proxyEnv has a cluster with a proxy and an initialized control plane, and a workload cluster to which tests apply
// the set.
type proxyEnv struct {
	*controllertest.Env

	reconciler *Reconciler
	serves     []string // versions of the API with mutating policies
	ahead      time.Duration
}

// serving is a workload cluster that serves some versions of mutating policies.
type serving struct {
	client.Client

	versions []string
}

// RESTMapper maps the requested kind.
func (s serving) RESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, v := range s.versions {
		mapper.Add(schema.GroupVersionKind{Group: addons.AdmissionGroup, Version: v, Kind: addons.MutatingPolicyKind},
			meta.RESTScopeRoot)
	}
	return mapper
}

func newProxyEnv(t *testing.T) *proxyEnv {
	t.Helper()
	w := &proxyEnv{Env: controllertest.New(t), serves: []string{"v1", "v1beta1"}}
	w.Workload = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	recorder := events.NewFakeRecorder(100)
	w.Events = recorder.Events
	w.reconciler = &Reconciler{
		Client:     w.Client,
		Secrets:    w.Client,
		Recorder:   recorder,
		SyncPeriod: 5 * time.Minute,
		Now:        func() time.Time { return time.Now().Add(w.ahead) },
		Workload: func(context.Context, client.ObjectKey) (client.Client, error) {
			if w.Workload == nil {
				return nil, errors.New("no route to host")
			}
			return serving{w.Workload, w.serves}, nil
		},
	}
	w.change(func(p *infrav1.ProxySpec) {
		p.HTTPProxy = "http://proxy:3128"
		p.NoProxy = []string{".corp"}
	})
	return w
}

func (w *proxyEnv) change(change func(*infrav1.ProxySpec)) {
	c := w.VCDCluster()
	change(&c.Spec.Proxy)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// initialized marks the infrastructure as ready and the control plane as initialized.
func (w *proxyEnv) initialized() {
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	c := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: controllertest.Namespace, Name: controllertest.ClusterName}
	w.Expect(w.Client.Get(w.Ctx, key, c)).To(Succeed())
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// pass reconciles once and returns PodProxyReady.
func (w *proxyEnv) pass() metav1.Condition {
	_, err := w.reconciler.Reconcile(w.Ctx, w.VCDCluster())
	w.Expect(err).NotTo(HaveOccurred())
	return ptr.Deref(conditions.Get(w.VCDCluster(), infrav1.PodProxyReadyCondition), metav1.Condition{})
}

func (w *proxyEnv) secret() *corev1.Secret {
	secret := &corev1.Secret{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{
		Namespace: controllertest.Namespace,
		Name:      controllertest.ClusterName + suffix,
	}, secret)).To(Succeed())
	return secret
}

func (w *proxyEnv) manifests() []unstructured.Unstructured {
	objects, err := addons.Parse(w.secret().Data[resourceset.ManifestsKey])
	w.Expect(err).NotTo(HaveOccurred())
	return objects
}

// apply applies the set, as Cluster API's controller does.
func (w *proxyEnv) apply() {
	for _, obj := range w.manifests() {
		err := w.Workload.Create(w.Ctx, obj.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			now := obj.DeepCopy()
			w.Expect(w.Workload.Get(w.Ctx, client.ObjectKeyFromObject(now), now)).To(Succeed())
			obj.SetResourceVersion(now.GetResourceVersion())
			err = w.Workload.Update(w.Ctx, &obj)
		}
		w.Expect(err).NotTo(HaveOccurred())
	}
}

// installed installs the policies.
func (w *proxyEnv) installed() {
	w.initialized()
	w.Expect(w.pass().Reason).To(Equal(infrav1.PodProxyApplyingReason))
	w.apply()
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))
}

// inWorkload returns an object of the workload cluster, or nil if it does not exist.
func (w *proxyEnv) inWorkload(u unstructured.Unstructured) *unstructured.Unstructured {
	found := u.DeepCopy()
	if err := w.Workload.Get(w.Ctx, client.ObjectKeyFromObject(found), found); err != nil {
		w.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		return nil
	}
	return found
}

func TestPoliciesAreInstalled(t *testing.T) {
	w := newProxyEnv(t)
	w.Expect(w.pass()).To(HaveField("Reason", infrav1.WaitingForEarlierPhaseReason))
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.pass()).To(HaveField("Reason", infrav1.WaitingForControlPlaneReason))

	w.installed()

	crs := &addonsv1.ClusterResourceSet{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{
		Namespace: controllertest.Namespace,
		Name:      controllertest.ClusterName + suffix,
	}, crs)).To(Succeed())
	w.Expect(crs.Spec.Strategy).To(Equal("Reconcile"))
	w.Expect(crs.Spec.ClusterSelector.MatchLabels).To(HaveKey(infrav1.PodProxyLabel))
	parameters := &corev1.ConfigMap{}
	w.Expect(w.Workload.Get(w.Ctx, client.ObjectKey{Namespace: addons.Namespace, Name: addons.ClusterPodProxyName},
		parameters)).To(Succeed())
	w.Expect(parameters.Data).To(And(HaveKeyWithValue("httpProxy", "http://proxy:3128"),
		HaveKeyWithValue("httpsProxy", ""),
		HaveKeyWithValue("noProxy", MatchRegexp(`^localhost,.*,\.svc,.*,192\.168\.100\.0/24,.*,\.corp$`))))
	w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeTrue())
}

func TestChangedPoliciesAreRestored(t *testing.T) {
	w := newProxyEnv(t)
	w.installed()
	policy := w.manifests()[1]
	w.Expect(w.Workload.Delete(w.Ctx, policy.DeepCopy())).To(Succeed())

	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue), "it is not inspected all the time")
	w.ahead += 6 * time.Minute
	w.Expect(w.pass()).To(And(HaveField("Reason", infrav1.PodProxyApplyingReason),
		HaveField("Message", ContainSubstring(policy.GetName()))))
	w.apply()
	w.ahead += addon.ApplyPoll
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("PodProxyRepaired")))
}

func TestOldVersionsOfKubernetes(t *testing.T) {
	w := newProxyEnv(t)
	w.serves = nil
	w.initialized()
	w.Expect(w.pass()).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", infrav1.AdmissionPoliciesNotServedReason),
		HaveField("Message", And(ContainSubstring("--runtime-config"), ContainSubstring("spec.proxy.pods")))))
	w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeTrue(), "the cluster still works")

	w.serves = []string{"v1beta1"}
	w.Expect(w.pass().Reason).To(Equal(infrav1.PodProxyApplyingReason))
	w.Expect(w.manifests()[1].GetAPIVersion()).To(Equal("admissionregistration.k8s.io/v1beta1"))
	w.apply()
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))

	w.serves = []string{"v1", "v1beta1"}
	w.ahead += 6 * time.Minute
	w.Expect(w.pass().Reason).To(Equal(infrav1.PodProxyApplyingReason))
	policy := w.manifests()[1]
	w.Expect(policy.GetAPIVersion()).To(Equal("admissionregistration.k8s.io/v1"))
	w.Expect(w.secret().Annotations).NotTo(HaveKey(infrav1.CloudProviderDroppedAnnotation),
		"the same object in another version is not removed")
	w.apply()
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))
}

func TestPoliciesAreRemovedWithTheProxy(t *testing.T) {
	for name, change := range map[string]func(*infrav1.ProxySpec){
		"the proxy is removed": func(p *infrav1.ProxySpec) { *p = infrav1.ProxySpec{} },
		"disabled for pods":    func(p *infrav1.ProxySpec) { p.Pods = infrav1.PodProxyNone },
	} {
		t.Run(name, func(t *testing.T) {
			w := newProxyEnv(t)
			w.installed()
			objects := w.manifests()
			w.change(change)
			reachable := w.Workload
			w.Workload = nil
			w.Expect(w.pass()).To(HaveField("Reason", infrav1.WorkloadClusterUnreachableReason))

			w.Workload = reachable
			w.Expect(w.pass()).To(Equal(metav1.Condition{}))

			for _, o := range objects {
				w.Expect(w.inWorkload(o)).To(BeNil(), o.GetName())
			}
			list := &addonsv1.ClusterResourceSetList{}
			w.Expect(w.Client.List(w.Ctx, list)).To(Succeed())
			w.Expect(list.Items).To(BeEmpty())
		})
	}
}

func TestPodsWaitForTheSettingsOfTheSameProxy(t *testing.T) {
	w := newProxyEnv(t)
	w.installed()
	before := w.manifests()
	w.change(func(p *infrav1.ProxySpec) { p.NoProxy = []string{".other"} })

	w.Expect(w.pass()).To(HaveField("Reason", infrav1.WaitingForEarlierPhaseReason))
	w.Expect(w.manifests()).To(Equal(before))
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.pass().Reason).To(Equal(infrav1.PodProxyApplyingReason))
	w.Expect(w.manifests()).NotTo(Equal(before))
}

func TestAWorkloadClusterThatDoesNotAnswerIsUnknown(t *testing.T) {
	w := newProxyEnv(t)
	w.initialized()
	w.Workload = nil

	w.Expect(w.pass()).To(And(HaveField("Status", metav1.ConditionUnknown),
		HaveField("Reason", infrav1.WorkloadClusterUnreachableReason)))
}
