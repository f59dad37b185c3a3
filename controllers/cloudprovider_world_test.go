package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const ccmImage = "registry.example.com/cloud-provider-for-cloud-director:v2.0.0"

// A ccmWorld is a world with a cluster whose control plane is up, and a workload cluster that tests apply sets to.
type ccmWorld struct {
	*world

	reconciler *CloudProviderReconciler
	ahead      time.Duration
}

func newCCMWorld(t *testing.T, objects ...client.Object) *ccmWorld {
	t.Helper()
	return newCCMWorldOn(t, vcdsim.K8sTenant(), objects...)
}

// newCCMWorldOn makes one with a site that is given.
func newCCMWorldOn(t *testing.T, model vcdsim.Model, objects ...client.Object) *ccmWorld {
	t.Helper()
	w := &ccmWorld{world: newWorldWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model}, objects...)}
	w.workload = fakeClient()
	w.reconciler = w.newReconciler()
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.InfraID = "infra-1"
		c.Spec.CloudProvider.Mode = infrav1.CloudProviderManaged
	})
	c := w.vcdClusterNow()
	c.Status.OVDC, c.Status.OVDCNetwork = &infrav1.ResourceReference{ID: w.vdcURN(), Name: "acme-vdc"}, &infrav1.ResourceReference{ID: "urn:vcloud:network:1", Name: "nodes"}
	w.Expect(w.client.Status().Update(w.ctx, c)).To(Succeed())
	w.changeIdentity(func(i *infrav1.VCDIdentity) { i.Spec.ShareWithClusters = ptr.To(true) })
	w.changeCAPICluster(func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = ptr.To(true) })
	return w
}

func (w *world) vdcURN() string { return vcdsim.URN("vdc", w.sim.State().Model.Orgs[1].VDCs[0].ID) }

func (w *world) gatewayURN(i int) string {
	return vcdsim.URN("gateway", w.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[i].ID)
}

// newReconciler makes one that remembers nothing.
func (w *ccmWorld) newReconciler() *CloudProviderReconciler {
	recorder := events.NewFakeRecorder(1000)
	w.events = recorder.Events
	return &CloudProviderReconciler{
		Client: w.client, Live: w.client, Identities: w.cluster.Identities, Sessions: w.cluster.Sessions, Recorder: recorder,
		Workload: func(context.Context, client.ObjectKey) (client.Client, error) {
			if w.workload == nil {
				return nil, errors.New("no route to host")
			}
			return w.workload, nil
		},
		Image: ccmImage, LookEvery: 5 * time.Minute, Now: func() time.Time { return time.Now().Add(w.ahead) },
	}
}

func (w *ccmWorld) vcdClusterNow() *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "vc1"}, c)).To(Succeed())
	return c
}

func (w *ccmWorld) changeCluster(change func(*infrav1.VCDCluster)) {
	c := w.vcdClusterNow()
	change(c)
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
}

func (w *ccmWorld) changeIdentity(change func(*infrav1.VCDIdentity)) {
	i := &infrav1.VCDIdentity{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "tenant"}, i)).To(Succeed())
	change(i)
	w.Expect(w.client.Update(w.ctx, i)).To(Succeed())
}

func (w *ccmWorld) changeSecret(key, value string) {
	secret := &corev1.Secret{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "tenant-credentials"}, secret)).To(Succeed())
	secret.Data[key] = []byte(value)
	w.Expect(w.client.Update(w.ctx, secret)).To(Succeed())
}

func (w *ccmWorld) changeCAPICluster(change func(*clusterv1.Cluster)) {
	c := w.capiCluster()
	change(c)
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
}

func (w *ccmWorld) capiCluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: testCluster}, c)).To(Succeed())
	return c
}

// pass reconciles once and returns CloudProviderReady.
func (w *ccmWorld) pass() metav1.Condition {
	_, err := w.reconciler.Reconcile(w.ctx, w.vcdClusterNow())
	w.Expect(err).NotTo(HaveOccurred())
	return ptr.Deref(conditions.Get(w.vcdClusterNow(), infrav1.CloudProviderReadyCondition), metav1.Condition{})
}

// set returns the Secret with the manifests; nil if there is none.
func (w *ccmWorld) set(suffix string) *corev1.Secret {
	secret := &corev1.Secret{}
	err := w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: testCluster + suffix}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.Expect(err).NotTo(HaveOccurred())
	return secret
}

// objects are what is to be applied.
func (w *ccmWorld) objects() []unstructured.Unstructured {
	set := w.set("-cloud-provider")
	w.Expect(set).NotTo(BeNil())
	objects, err := addons.Parse(set.Data["manifests.yaml"])
	w.Expect(err).NotTo(HaveOccurred())
	return objects
}

// apply does what Cluster API's controller does with the set.
func (w *ccmWorld) apply() {
	for _, obj := range w.objects() {
		now := obj.DeepCopy()
		err := w.workload.Get(w.ctx, client.ObjectKeyFromObject(now), now)
		if apierrors.IsNotFound(err) {
			w.Expect(w.workload.Create(w.ctx, obj.DeepCopy())).To(Succeed())
			continue
		}
		w.Expect(err).NotTo(HaveOccurred())
		obj.SetResourceVersion(now.GetResourceVersion())
		w.Expect(w.workload.Patch(w.ctx, obj.DeepCopy(), client.MergeFrom(now))).To(Succeed())
	}
}

// deployment returns that of the workload cluster.
func (w *ccmWorld) deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	w.Expect(w.workload.Get(w.ctx, client.ObjectKey{Namespace: addons.Namespace, Name: addons.DeploymentName}, d)).To(Succeed())
	return d
}

// runs says that a pod is available.
func (w *ccmWorld) runs() {
	n := ptr.Deref(w.deployment().Spec.Replicas, 1)
	w.rolls(appsv1.DeploymentStatus{Replicas: n, UpdatedReplicas: n, AvailableReplicas: 1})
}

// rolls says what becomes of the Deployment.
func (w *ccmWorld) rolls(status appsv1.DeploymentStatus) {
	d := w.deployment()
	d.Status = status
	w.Expect(w.workload.Status().Update(w.ctx, d)).To(Succeed())
}

// installed brings the cloud controller manager up.
func (w *ccmWorld) installed() {
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()
	w.runs()
	got := w.pass()
	w.Expect(got.Status).To(Equal(metav1.ConditionTrue), got.Message)
}
