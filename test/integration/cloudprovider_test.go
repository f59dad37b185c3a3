// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	ccmToken     = "canary-in-the-token-of-the-ccm-71aa"
	systemCanary = "canary-in-the-password-of-the-system-c0de"
)

// A guest is a test cluster with a client for its workload cluster. Cluster API applies there the manifests that the
// manager renders.
type guest struct {
	*testCluster

	workload client.Client
}

// TestCloudControllerManagerOfACluster follows the cloud controller manager of a cluster from its installation to the
// deletion of the cluster.
func TestCloudControllerManagerOfACluster(t *testing.T) {
	t.Parallel()
	l := newTestCluster(t, newReplica(t, "ccm", "--cloud-provider-sync-period=2s",
		"--cloud-provider-registry=registry.example.com/vcd", "--cloud-provider-version=v2.0.0"), 0,
		func(c *vcdsim.Config) { c.Model.Orgs[1].Users[2].APITokens = []string{ccmToken} })
	l.provision()
	gst := &guest{testCluster: l, workload: l.workloadClient()}

	gst.testInstallation()
	gst.testRotation()
	gst.testRepair()
	gst.testDroppedObjects()
	gst.testConflict()
	gst.testSystemAdministrator()

	l.destroy()
	sets := &addonsv1.ClusterResourceSetList{}
	l.g.Eventually(func(g Gomega) {
		g.Expect(shared.client.List(t.Context(), sets, client.InNamespace(l.namespace))).To(Succeed())
		g.Expect(sets.Items).To(BeEmpty())
		g.Expect(l.secretsOfSets()).To(BeEmpty())
	}, timeout, "250ms").Should(Succeed(), "the ClusterResourceSet and its Secrets are deleted with the cluster")
}

func (l *testCluster) workloadClient() client.Client {
	l.t.Helper()
	kubeconfig, err := shared.workloads.AdminKubeconfig(l.name)
	l.g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	l.g.Expect(err).NotTo(HaveOccurred())
	workload, err := client.New(config, client.Options{Scheme: scheme()})
	l.g.Expect(err).NotTo(HaveOccurred())
	return workload
}

// secretsOfSets returns the Secrets of ClusterResourceSets in the management cluster.
func (l *testCluster) secretsOfSets() []corev1.Secret {
	list := &corev1.SecretList{}
	l.g.Expect(shared.client.List(l.t.Context(), list, client.InNamespace(l.namespace),
		client.MatchingFields{"type": string(addonsv1.ClusterResourceSetSecretType)})).To(Succeed())
	return list.Items
}

func (gst *guest) get(obj client.Object) error {
	return gst.workload.Get(gst.t.Context(), client.ObjectKeyFromObject(obj), obj)
}

func inCluster(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: addons.Namespace, Name: name}
}

// waitForCloudProvider waits until the state of CloudProviderReady has the prefix. See site.state for the format.
func (gst *guest) waitForCloudProvider(prefix string) {
	gst.t.Helper()
	c := &infrav1.VCDCluster{ObjectMeta: gst.meta(gst.name)}
	gst.g.Eventually(func() (string, error) { return gst.state(c, infrav1.CloudProviderReadyCondition) }, timeout,
		"100ms").Should(HavePrefix(prefix))
}

// markAvailable marks a pod as available, as kubelet would, until the condition reports it. The in-memory server has no
// status subresource, so that each apply removes the status, and each change increases the generation.
func (gst *guest) markAvailable() {
	gst.t.Helper()
	c := &infrav1.VCDCluster{ObjectMeta: gst.meta(gst.name)}
	gst.g.Eventually(func() (string, error) {
		d := &appsv1.Deployment{ObjectMeta: inCluster(addons.DeploymentName)}
		if err := gst.get(d); err != nil {
			return "", err
		}
		if d.Status.AvailableReplicas == 0 || d.Status.ObservedGeneration < d.Generation {
			n := *d.Spec.Replicas
			d.Status = appsv1.DeploymentStatus{
				Replicas:           n,
				UpdatedReplicas:    n,
				AvailableReplicas:  1,
				ObservedGeneration: d.Generation + 1,
			}
			if err := gst.workload.Update(gst.t.Context(), d); err != nil {
				return "", err
			}
		}
		return gst.state(c, infrav1.CloudProviderReadyCondition)
	}, timeout, "250ms").Should(HavePrefix("True"))
}

func (gst *guest) testInstallation() {
	gst.t.Log("installation")
	gst.waitForCloudProvider("False " + infrav1.CloudProviderUnavailableReason)
	gst.markAvailable()
	d := &appsv1.Deployment{ObjectMeta: inCluster(addons.DeploymentName)}
	config := &corev1.ConfigMap{ObjectMeta: inCluster(addons.ConfigMapName)}
	gst.g.Expect(gst.get(d)).To(Succeed())
	gst.g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(
		Equal("registry.example.com/vcd/cloud-provider-for-cloud-director:v2.0.0"))
	gst.g.Expect(gst.get(config)).To(Succeed())
	c := &infrav1.VCDCluster{ObjectMeta: gst.meta(gst.name)}
	gst.g.Expect(gst.testCluster.get(c)).To(Succeed())
	gst.g.Expect(config.Data[addons.ConfigKey]).To(And(ContainSubstring("clusterid: "+c.Spec.InfraID),
		ContainSubstring("host: "+gst.URL())))
	gst.waitForCredentials(infrav1.SecretPassword, gst.password())
}

// waitForCredentials waits until a key of the Secret in the workload cluster has a value.
func (gst *guest) waitForCredentials(key, value string) {
	gst.t.Helper()
	gst.g.Eventually(func() (string, error) {
		secret := &corev1.Secret{ObjectMeta: inCluster(addons.ManagedCredentialsName)}
		err := gst.get(secret)
		return string(secret.Data[key]), err
	}, timeout, "100ms").Should(Equal(value))
}

// updateIdentitySecret changes keys of the Secret of the cloud controller manager's identity.
func (gst *guest) updateIdentitySecret(values map[string]string) {
	gst.t.Helper()
	data := map[string]any{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	raw, err := json.Marshal(map[string]any{"data": data})
	gst.g.Expect(err).NotTo(HaveOccurred())
	gst.patch(&corev1.Secret{ObjectMeta: gst.meta(gst.name + "-ccm-credentials")}, string(raw))
}

func (gst *guest) testRotation() {
	gst.t.Log("rotated credentials")
	gst.updateIdentitySecret(map[string]string{"apiToken": ccmToken})
	gst.waitForCredentials(addons.RefreshTokenKey, ccmToken)
	gst.waitForCredentials(infrav1.SecretPassword, "")
	gst.markAvailable()
}

func (gst *guest) testRepair() {
	gst.t.Log("manual deletion")
	d := &appsv1.Deployment{ObjectMeta: inCluster(addons.DeploymentName)}
	gst.g.Expect(gst.workload.Delete(gst.t.Context(), d)).To(Succeed())
	gst.g.Eventually(func() error { return gst.get(&appsv1.Deployment{ObjectMeta: d.ObjectMeta}) }, timeout,
		"100ms").Should(Succeed())
	gst.markAvailable()
	gst.g.Expect(gst.events(gst.vcdCluster())).To(ContainElement(And(ContainSubstring("CloudProviderRepaired"),
		ContainSubstring(addons.DeploymentName))))
}

func (gst *guest) vcdCluster() *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{ObjectMeta: gst.meta(gst.name)}
	gst.g.Expect(gst.testCluster.get(c)).To(Succeed())
	return c
}

func (gst *guest) testDroppedObjects() {
	gst.t.Log("object dropped by a release")
	infraID := gst.vcdCluster().Spec.InfraID
	old := &corev1.ConfigMap{ObjectMeta: inCluster("of-an-old-release")}
	foreign := &corev1.ConfigMap{ObjectMeta: inCluster("foreign")}
	old.Annotations = map[string]string{infrav1.CloudProviderOfAnnotation: infraID}
	gst.g.Expect(gst.workload.Create(gst.t.Context(), old)).To(Succeed())
	gst.g.Expect(gst.workload.Create(gst.t.Context(), foreign)).To(Succeed())
	dropped := `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"kube-system","name":"of-an-old-release"},{"apiVersion":"v1","kind":"ConfigMap","namespace":"kube-system","name":"foreign"}]`
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"annotations": map[string]string{infrav1.CloudProviderDroppedAnnotation: dropped}}})
	gst.g.Expect(err).NotTo(HaveOccurred())
	gst.patch(&corev1.Secret{ObjectMeta: gst.meta(gst.name + "-cloud-provider")}, string(patch))

	gst.g.Eventually(func() bool { return apierrors.IsNotFound(gst.get(old.DeepCopy())) }, timeout,
		"100ms").Should(BeTrue())
	gst.g.Expect(gst.get(foreign)).To(Succeed(), "an object without the ownership annotation stays")
	gst.markAvailable()
}

// setMode sets the cloud provider mode, which determines who installs the cloud controller manager.
func (gst *guest) setMode(mode infrav1.CloudProviderMode) {
	gst.t.Helper()
	identity := "null"
	if mode == infrav1.CloudProviderManaged {
		identity = fmt.Sprintf(`{"kind":"VCDIdentity","name":%q}`, gst.name+"-ccm")
	}
	gst.patch(&infrav1.VCDCluster{ObjectMeta: gst.meta(gst.name)},
		fmt.Sprintf(`{"spec":{"cloudProvider":{"mode":%q,"identityRef":%s}}}`, mode, identity))
}

func (gst *guest) testConflict() {
	gst.t.Log("removal, and conflict with another cloud controller manager")
	d := &appsv1.Deployment{ObjectMeta: inCluster(addons.DeploymentName)}
	gst.setMode(infrav1.CloudProviderNone)
	gst.g.Eventually(func() bool { return apierrors.IsNotFound(gst.get(d.DeepCopy())) }, timeout,
		"100ms").Should(BeTrue())
	gst.g.Eventually(gst.secretsOfSets, timeout, "100ms").Should(BeEmpty())
	other := &appsv1.Deployment{ObjectMeta: inCluster(addons.DeploymentName)}
	other.Spec.Template.Spec.Containers = []corev1.Container{{
		Name:  "vmware-cloud-director-ccm",
		Image: "projects.registry.vmware.com/vmware-cloud-director/cloud-provider-for-cloud-director:1.6.1",
	}}
	gst.g.Expect(gst.workload.Create(gst.t.Context(), other)).To(Succeed())

	gst.setMode(infrav1.CloudProviderManaged)

	gst.waitForCloudProvider("False " + infrav1.CloudProviderConflictReason + ": Another cloud controller manager is installed in the workload cluster: remove Deployment kube-system/vmware-cloud-director-ccm")
	gst.g.Expect(gst.secretsOfSets()).To(BeEmpty())
	gst.g.Expect(gst.workload.Delete(gst.t.Context(), other)).To(Succeed())
	gst.patch(&infrav1.VCDCluster{ObjectMeta: gst.meta(gst.name)}, `{"metadata":{"annotations":{"look":"now"}}}`)
	gst.markAvailable()
}

// testSystemAdministrator sets the credentials of a system administrator in the identity of the cloud controller
// manager. The password must not leave the Secret of the identity.
func (gst *guest) testSystemAdministrator() {
	gst.t.Log("credentials of a system administrator")
	gst.updateIdentitySecret(map[string]string{"apiToken": "", "username": "System/administrator", "password": systemCanary})
	gst.waitForCloudProvider("False " + infrav1.IdentityNotShareableReason)
	forms := []string{systemCanary, base64.StdEncoding.EncodeToString([]byte(systemCanary))}
	lists := map[client.ObjectList]client.Client{
		&corev1.SecretList{}:    shared.client,
		&corev1.ConfigMapList{}: gst.workload,
	}
	lists[&corev1.SecretList{}] = gst.workload
	for list, reader := range lists {
		gst.g.Expect(reader.List(gst.t.Context(), list)).To(Succeed())
		raw, err := json.Marshal(list)
		gst.g.Expect(err).NotTo(HaveOccurred())
		for _, form := range forms {
			found := strings.Count(string(raw), form)
			if reader == shared.client {
				found -= ownCopies(list, form)
			}
			gst.g.Expect(found).To(BeZero(), "%T contains the password of a system administrator", list)
		}
	}
	user := gst.State().Model.Orgs[1].Users[2]
	gst.updateIdentitySecret(map[string]string{"username": user.Name, "password": user.Password})
	gst.markAvailable()
}

// ownCopies counts the permitted occurrences of a text, in Secrets of identities.
func ownCopies(list client.ObjectList, form string) int {
	secrets, ok := list.(*corev1.SecretList)
	if !ok {
		return 0
	}
	n := 0
	for i := range secrets.Items {
		if strings.HasSuffix(secrets.Items[i].Name, "-credentials") {
			raw, err := json.Marshal(secrets.Items[i])
			if err == nil {
				n += strings.Count(string(raw), form)
			}
		}
	}
	return n
}
