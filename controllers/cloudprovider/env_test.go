// SPDX-License-Identifier: Apache-2.0

package cloudprovider

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
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// configured returns the configuration for the cloud controller manager.
func (w *ccmEnv) configured() vcdconfig.Config {
	var config vcdconfig.Config
	for _, object := range w.objects() {
		if object.GetKind() != "ConfigMap" {
			continue
		}
		data, ok := object.Object["data"].(map[string]any)
		w.Expect(ok).To(BeTrue())
		text, ok := data[addons.ConfigKey].(string)
		w.Expect(ok).To(BeTrue())
		w.Expect(yaml.UnmarshalStrict([]byte(text), &config)).To(Succeed())
	}
	return config
}

// grantCCM writes a token to the Secret of the cloud controller manager's identity.
func (w *ccmEnv) grantCCM(token string) {
	secret := w.Secret("ccm-token")
	secret.Data = map[string][]byte{"apiToken": []byte(token), "ca.crt": w.Sim.CA()}
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
}

// expectNoSecrets checks that no Secret exists that Cluster API would apply.
func (w *ccmEnv) expectNoSecrets() {
	w.Expect(w.set("-cloud-provider")).To(BeNil())
	w.Expect(w.set("-cloud-provider-seed")).To(BeNil())
}

// another returns the cluster as a different one that took over the cloud controller manager's identity: it differs
// only in its ID.
func (w *ccmEnv) another(id string) {
	for _, suffix := range []string{"-cloud-provider", "-cloud-provider-seed"} {
		w.Expect(w.Client.Delete(w.Ctx, w.set(suffix))).To(Succeed())
	}
	w.Workload = controllertest.NewClient()
	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.InfraID = id })
	w.reconciler = w.newReconciler()
}

func (w *ccmEnv) changeCCMIdentity(change func(*infrav1.VCDIdentity)) {
	i := &infrav1.VCDIdentity{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "ccm"}, i)).To(Succeed())
	change(i)
	w.Expect(w.Client.Update(w.Ctx, i)).To(Succeed())
}

const ccmImage = "registry.example.com/cloud-provider-for-cloud-director:v2.0.0"

// A ccmEnv is an environment with an initialized control plane, and a workload cluster to which tests apply the set.
type ccmEnv struct {
	*controllertest.Env

	reconciler *Reconciler
	ahead      time.Duration
}

func newCCMEnv(t *testing.T, objects ...client.Object) *ccmEnv {
	t.Helper()
	return newCCMEnvOn(t, vcdsim.K8sTenant(), objects...)
}

// newCCMEnvOn returns an environment on a given site.
func newCCMEnvOn(t *testing.T, model vcdsim.Model, objects ...client.Object) *ccmEnv {
	t.Helper()
	w := &ccmEnv{Env: controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model}, objects...)}
	w.Workload = controllertest.NewClient()
	w.reconciler = w.newReconciler()
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.InfraID = "infra-1"
		c.Spec.CloudProvider.Mode = infrav1.CloudProviderManaged
		c.Spec.CloudProvider.IdentityRef = &infrav1.IdentityReference{Name: "tenant"}
	})
	c := w.vcdClusterNow()
	c.Status.OVDC = &infrav1.ResourceReference{ID: vdcURN(w.Env), Name: "acme-vdc"}
	c.Status.OVDCNetwork = &infrav1.ResourceReference{ID: "urn:vcloud:network:1", Name: "nodes"}
	w.Expect(w.Client.Status().Update(w.Ctx, c)).To(Succeed())
	w.changeIdentity(func(i *infrav1.VCDIdentity) { i.Spec.ShareWithClusters = ptr.To(true) })
	w.changeCAPICluster(func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = ptr.To(true) })
	return w
}

func vdcURN(w *controllertest.Env) string {
	return vcdsim.URN("vdc", w.Sim.State().Model.Orgs[1].VDCs[0].ID)
}

func gatewayURN(w *controllertest.Env, i int) string {
	return vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[i].ID)
}

// newReconciler returns a reconciler without cached state.
func (w *ccmEnv) newReconciler() *Reconciler {
	recorder := events.NewFakeRecorder(1000)
	w.Events = recorder.Events
	return &Reconciler{
		Client:     w.Client,
		Secrets:    w.Client,
		Identities: w.Cluster.Identities,
		Sessions:   w.Cluster.Sessions,
		Recorder:   recorder,
		Workload: func(context.Context, client.ObjectKey) (client.Client, error) {
			if w.Workload == nil {
				return nil, errors.New("no route to host")
			}
			return w.Workload, nil
		},
		Image:      ccmImage,
		SyncPeriod: 5 * time.Minute,
		Now:        func() time.Time { return time.Now().Add(w.ahead) },
	}
}

func (w *ccmEnv) vcdClusterNow() *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "vc1"}, c)).To(Succeed())
	return c
}

func (w *ccmEnv) changeCluster(change func(*infrav1.VCDCluster)) {
	c := w.vcdClusterNow()
	change(c)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// writeNodeProxy writes the proxy settings of nodes, as the VCDCluster reconciler does.
func (w *ccmEnv) writeNodeProxy(direct ...string) {
	_, err := nodesecret.Secret{
		Client:  w.Client,
		Secrets: w.Client,
		Owner:   w.vcdClusterNow(),
		Cluster: controllertest.ClusterName,
		Suffix:  nodeproxy.SecretSuffix,
		Holds:   "the proxy settings of nodes",
	}.Write(w.Ctx, nodeproxy.Settings{HTTPS: "http://user:from-secret@proxy:3128", Direct: direct}.Files())
	w.Expect(err).NotTo(HaveOccurred())
}

func (w *ccmEnv) changeIdentity(change func(*infrav1.VCDIdentity)) {
	i := &infrav1.VCDIdentity{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "tenant"},
		i)).To(Succeed())
	change(i)
	w.Expect(w.Client.Update(w.Ctx, i)).To(Succeed())
}

func (w *ccmEnv) changeSecret(key, value string) {
	secret := &corev1.Secret{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "tenant-credentials"},
		secret)).To(Succeed())
	secret.Data[key] = []byte(value)
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
}

func (w *ccmEnv) changeCAPICluster(change func(*clusterv1.Cluster)) {
	c := w.capiCluster()
	change(c)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

func (w *ccmEnv) capiCluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{}
	w.Expect(w.Client.Get(w.Ctx,
		client.ObjectKey{Namespace: controllertest.Namespace, Name: controllertest.ClusterName}, c)).To(Succeed())
	return c
}

// pass reconciles once and returns CloudProviderReady.
func (w *ccmEnv) pass() metav1.Condition {
	_, err := w.reconciler.Reconcile(w.Ctx, w.vcdClusterNow())
	w.Expect(err).NotTo(HaveOccurred())
	return ptr.Deref(conditions.Get(w.vcdClusterNow(), infrav1.CloudProviderReadyCondition), metav1.Condition{})
}

// set returns the Secret with the manifests, or nil.
func (w *ccmEnv) set(suffix string) *corev1.Secret {
	secret := &corev1.Secret{}
	err := w.Client.Get(w.Ctx,
		client.ObjectKey{Namespace: controllertest.Namespace, Name: controllertest.ClusterName + suffix}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.Expect(err).NotTo(HaveOccurred())
	return secret
}

// objects returns the objects to apply.
func (w *ccmEnv) objects() []unstructured.Unstructured {
	set := w.set("-cloud-provider")
	w.Expect(set).NotTo(BeNil())
	objects, err := addons.Parse(set.Data["manifests.yaml"])
	w.Expect(err).NotTo(HaveOccurred())
	return objects
}

// apply applies the set, as Cluster API's controller does.
func (w *ccmEnv) apply() {
	for _, obj := range w.objects() {
		now := obj.DeepCopy()
		err := w.Workload.Get(w.Ctx, client.ObjectKeyFromObject(now), now)
		if apierrors.IsNotFound(err) {
			w.Expect(w.Workload.Create(w.Ctx, obj.DeepCopy())).To(Succeed())
			continue
		}
		w.Expect(err).NotTo(HaveOccurred())
		obj.SetResourceVersion(now.GetResourceVersion())
		w.Expect(w.Workload.Patch(w.Ctx, obj.DeepCopy(), client.MergeFrom(now))).To(Succeed())
	}
}

// deployment returns the Deployment in the workload cluster.
func (w *ccmEnv) deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	w.Expect(w.Workload.Get(w.Ctx, client.ObjectKey{Namespace: addons.Namespace, Name: addons.DeploymentName},
		d)).To(Succeed())
	return d
}

// runs reports an available pod in the Deployment's status.
func (w *ccmEnv) runs() {
	n := ptr.Deref(w.deployment().Spec.Replicas, 1)
	w.setRollout(appsv1.DeploymentStatus{Replicas: n, UpdatedReplicas: n, AvailableReplicas: 1})
}

// setRollout sets the rollout status of the Deployment.
func (w *ccmEnv) setRollout(status appsv1.DeploymentStatus) {
	d := w.deployment()
	d.Status = status
	w.Expect(w.Workload.Status().Update(w.Ctx, d)).To(Succeed())
}

// installed installs the cloud controller manager.
func (w *ccmEnv) installed() {
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()
	w.runs()
	got := w.pass()
	w.Expect(got.Status).To(Equal(metav1.ConditionTrue), got.Message)
}
