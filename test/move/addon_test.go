// SPDX-License-Identifier: Apache-2.0

package move

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// addon is the name of the Secret with the manifests of the cloud controller manager, and of its ClusterResourceSet.
const addon = name + "-cloud-provider"

// token is an API token of the user of the cloud controller manager, whose password is the initial credential.
const token = "token-of-the-moving-cluster"

// cloudProviderInstalled waits until a management cluster has installed the cloud controller manager in the workload
// cluster. Each object that installs it must exist once, with an owner in the same management cluster.
func (s *environment) cloudProviderInstalled(h cluster) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		infra := &infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		g.Expect(h.client.Get(s.t.Context(), client.ObjectKeyFromObject(infra), infra)).To(Succeed())
		g.Expect(reason(infra, infrav1.CloudProviderReadyCondition)).To(Equal(infrav1.CloudProviderUnavailableReason),
			"only the pod is missing")
		sets := &addonsv1.ClusterResourceSetList{}
		bindings := &addonsv1.ClusterResourceSetBindingList{}
		secrets := &corev1.SecretList{}
		g.Expect(h.client.List(s.t.Context(), sets)).To(Succeed())
		g.Expect(h.client.List(s.t.Context(), bindings)).To(Succeed())
		g.Expect(h.client.List(s.t.Context(), secrets, client.InNamespace(namespace),
			client.MatchingFields{"type": string(addonsv1.ClusterResourceSetSecretType)})).To(Succeed())
		g.Expect(sets.Items).To(ConsistOf(HaveField("Name", addon)))
		g.Expect(secrets.Items).To(ConsistOf(HaveField("Name", addon)))
		g.Expect(bindings.Items).To(ConsistOf(HaveField("Name", name)))
		applied := bindings.Items[0].Spec.Bindings
		g.Expect(applied).To(HaveLen(1))
		g.Expect(applied[0].ClusterResourceSetName).To(Equal(addon))
		g.Expect(applied[0].Resources).To(ConsistOf(HaveField("Applied", HaveValue(BeTrue()))))
		g.Expect(metav1.IsControlledBy(&sets.Items[0], infra)).To(BeTrue(), "%v", sets.Items[0].OwnerReferences)
		g.Expect(metav1.IsControlledBy(&secrets.Items[0], infra)).To(BeTrue(), "%v", secrets.Items[0].OwnerReferences)
		for _, obj := range []client.Object{&sets.Items[0], &bindings.Items[0], &secrets.Items[0]} {
			g.Expect(obj.GetOwnerReferences()).NotTo(BeEmpty())
			for _, owner := range obj.GetOwnerReferences() {
				g.Expect(s.uidOf(h, owner)).To(Equal(owner.UID), "%T is owned by %v", obj, owner)
			}
		}
	}, timeout, "250ms").Should(Succeed())
}

// uidOf returns the UID of the object in an owner reference.
func (s *environment) uidOf(h cluster, ref metav1.OwnerReference) (types.UID, error) {
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion(ref.APIVersion)
	owner.SetKind(ref.Kind)
	err := h.client.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: ref.Name}, owner)
	return owner.GetUID(), err
}

func reason(object interface{ GetConditions() []metav1.Condition }, kind string) string {
	for _, c := range object.GetConditions() {
		if c.Type == kind {
			return c.Reason
		}
	}
	return "absent"
}

func (s *environment) workload() client.Client {
	s.t.Helper()
	kubeconfig, err := s.site.Workloads.AdminKubeconfig(name)
	s.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	s.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{})
	s.Expect(err).NotTo(HaveOccurred())
	return c
}

// installedObjects returns the objects of the cloud controller manager in the workload cluster, by name. A move must
// not change them, although Cluster API applies them again if the ClusterResourceSet is created before its
// ClusterResourceSetBinding.
func (s *environment) installedObjects() map[string]string {
	s.t.Helper()
	contents := map[string]string{}
	workload := s.workload()
	for _, obj := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: addons.DeploymentName}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: addons.ConfigMapName}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: addons.ManagedCredentialsName}},
	} {
		obj.SetNamespace(addons.Namespace)
		s.Expect(workload.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		obj.SetResourceVersion("") // Simulated workload clusters increase it on each write, even without a change.
		obj.SetGeneration(0)
		obj.SetManagedFields(nil)
		content, err := json.Marshal(obj)
		s.Expect(err).NotTo(HaveOccurred())
		contents[obj.GetName()] = string(content)
	}
	return contents
}

// rotate changes the token of the cluster's identity, and waits until it is in the workload cluster. An empty token
// switches back to the password.
func (s *environment) rotate(h cluster, token string) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + "-ccm-credentials", Namespace: namespace}}
	patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, infrav1.SecretAPIToken,
		base64.StdEncoding.EncodeToString([]byte(token)))
	s.Expect(h.client.Patch(s.t.Context(), secret, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	workload := s.workload()
	s.Eventually(func() (string, error) {
		applied := &corev1.Secret{}
		err := workload.Get(s.t.Context(), client.ObjectKey{Namespace: addons.Namespace, Name: addons.ManagedCredentialsName},
			applied)
		return string(applied.Data[addons.RefreshTokenKey]), err
	}, timeout, "250ms").Should(Equal(token))
}
