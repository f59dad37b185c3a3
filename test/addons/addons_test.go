// SPDX-License-Identifier: Apache-2.0

// Package addons_test applies the manifests of the cloud controller manager to a real kube-apiserver with kubectl, as
// users do: in an empty cluster, and as an upgrade of VMware's CPI 1.6.1.
package addons_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

const image = "registry.example.com/cloud-provider-for-cloud-director:v2.0.0"

// A cluster is an API server that the tests share sequentially.
type cluster struct {
	*WithT
	*stack.Stack

	t *testing.T
}

func TestStandAloneManifests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server; not in short mode")
	}
	g := NewWithT(t)
	s, err := stack.Start(t.Context(), stack.Options{Dir: t.TempDir(), Out: t.Output(), Parts: []stack.Part{}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(s.Stop()).To(Succeed()) })
	for _, test := range []struct {
		name string
		run  func(cluster)
	}{
		{"install in an empty cluster with minimal rights", testInstall},
		{"violate Pod Security only with the host network", testPodSecurity},
		{"match the manifests of the chart, for each cloud", testInstallByChart},
		{"upgrade a CPI 1.6.1 that kubectl applied", testUpgradeOfApplied},
		{"upgrade a CPI 1.6.1 that a ClusterResourceSet created", testUpgradeOfCreated},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(cluster{NewWithT(t), s, t}) })
	}
}

// manifest returns a file of a release.
func (c cluster) manifest(name string) []byte {
	files, err := addons.StandAlone(image)
	c.Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(files, func(f addons.File) bool { return f.Name == name })
	c.Expect(i).To(BeNumerically(">=", 0), name)
	return files[i].Content
}

func (c cluster) kubectl(manifest []byte, args ...string) {
	out, err := c.Kubectl(c.t.Context(), bytes.NewReader(manifest), append(args, "--validate=strict", "-f", "-")...)
	c.Expect(err).NotTo(HaveOccurred(), string(out))
}

func (c cluster) remove(manifest []byte) {
	out, err := c.Kubectl(c.t.Context(), bytes.NewReader(manifest), "delete", "--ignore-not-found", "-f", "-")
	c.Expect(err).NotTo(HaveOccurred(), string(out))
}

func (c cluster) deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	c.Expect(c.Client().Get(c.t.Context(), client.ObjectKey{Namespace: addons.Namespace, Name: addons.DeploymentName},
		d)).To(Succeed())
	return d
}

func testInstall(c cluster) {
	for _, name := range []string{
		addons.ManifestName, addons.ConfigMapFile, addons.CredentialsFile,
		addons.ClusterIDFile,
	} {
		manifest := c.manifest(name)
		c.kubectl(manifest, "apply")
		defer c.remove(manifest)
	}
	c.Expect(c.hasAllFields(c.manifest(addons.ManifestName))).To(BeTrue(), "the API server should store all applied fields")

	for _, allowed := range []authorizationv1.ResourceAttributes{
		{Verb: "update", Resource: "nodes"},
		{Verb: "patch", Resource: "nodes", Subresource: "status"},
		{Verb: "delete", Resource: "nodes"},
		{Verb: "watch", Resource: "services"},
		{Verb: "patch", Resource: "services", Subresource: "status"},
		{Verb: "create", Resource: "events", Namespace: "default"},
		{
			Verb:      "update",
			Group:     "coordination.k8s.io",
			Resource:  "leases",
			Namespace: "kube-system",
			Name:      "cloud-controller-manager",
		},
		{Verb: "update", Resource: "secrets", Namespace: "kube-system", Name: "vcloud-service-account"},
	} {
		// The API server applies new roles after a delay.
		c.Eventually(c.isAllowed).WithArguments(allowed).Should(BeTrue(), "%v", allowed)
	}
	for _, forbidden := range []authorizationv1.ResourceAttributes{
		{Verb: "get", Resource: "secrets", Namespace: "shop", Name: "tls"},
		{Verb: "list", Resource: "secrets", Namespace: "kube-system"},
		{Verb: "update", Resource: "secrets", Namespace: "shop", Name: "tls"},
		{Verb: "get", Resource: "configmaps", Namespace: "kube-system"},
		{Verb: "create", Resource: "nodes"},
		{Verb: "delete", Resource: "services"},
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: "kube-system"},
		{Verb: "list", Resource: "pods"},
		{
			Verb:      "update",
			Group:     "coordination.k8s.io",
			Resource:  "leases",
			Namespace: "kube-system",
			Name:      "kube-scheduler",
		},
	} {
		c.Expect(c.isAllowed(forbidden)).To(BeFalse(), "%v", forbidden)
	}
	c.bind("shop", "system:cloud-controller-manager:tls-secrets")
	c.Eventually(c.isAllowed).WithArguments(authorizationv1.ResourceAttributes{
		Verb:      "get",
		Resource:  "secrets",
		Namespace: "shop",
		Name:      "tls",
	}).
		Should(BeTrue(), "a binding of the role should grant access")
	c.Expect(c.isAllowed(authorizationv1.ResourceAttributes{
		Verb:      "get",
		Resource:  "secrets",
		Namespace: "blog",
		Name:      "tls",
	})).To(BeFalse())
}

// bind binds a role to the cloud controller manager in one namespace.
func (c cluster) bind(namespace, role string) {
	c.Expect(c.Client().Create(c.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	c.Expect(c.Client().Create(c.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ccm"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{
			Kind:      rbacv1.ServiceAccountKind,
			Namespace: addons.Namespace,
			Name:      "cloud-controller-manager",
		}},
	})).To(Succeed())
}

// hasAllFields reports whether the API server stores all fields of a manifest. It uses the manager's comparison.
func (c cluster) hasAllFields(manifest []byte) bool {
	desired, err := addons.Parse(manifest)
	c.Expect(err).NotTo(HaveOccurred())
	for _, w := range desired {
		actual := &unstructured.Unstructured{}
		actual.SetGroupVersionKind(w.GroupVersionKind())
		c.Expect(c.Client().Get(c.t.Context(), client.ObjectKeyFromObject(&w), actual)).To(Succeed())
		if !addons.Holds(actual.Object, w.Object) {
			c.t.Logf("%s %s is %v", w.GetKind(), w.GetName(), actual.Object)
			return false
		}
	}
	return true
}

// isAllowed reports whether the service account of the cloud controller manager has a permission.
func (c cluster) isAllowed(what authorizationv1.ResourceAttributes) bool {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:kube-system:cloud-controller-manager",
		Groups:             []string{"system:serviceaccounts"},
		ResourceAttributes: &what,
	}}
	scheme := runtime.NewScheme()
	c.Expect(authorizationv1.AddToScheme(scheme)).To(Succeed())
	reviewer, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(reviewer.Create(c.t.Context(), review)).To(Succeed())
	return review.Status.Allowed
}

func testPodSecurity(c cluster) {
	const namespace = "restricted"
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace,
		Labels: map[string]string{
			"pod-security.kubernetes.io/enforce":         "restricted",
			"pod-security.kubernetes.io/enforce-version": "latest",
		},
	}}
	c.Expect(c.Client().Create(c.t.Context(), ns)).To(Succeed())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace,
		Name:      "cloud-controller-manager",
	}}
	c.Expect(c.Client().Create(c.t.Context(), account)).To(Succeed())
	objects, err := addons.Parse(c.manifest(addons.ManifestName))
	c.Expect(err).NotTo(HaveOccurred())
	deployment := objects[slices.IndexFunc(objects,
		func(u unstructured.Unstructured) bool { return u.GetKind() == "Deployment" })]
	raw, err := json.Marshal(deployment.Object)
	c.Expect(err).NotTo(HaveOccurred())
	d := &appsv1.Deployment{}
	c.Expect(json.Unmarshal(raw, d)).To(Succeed())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ccm"}, Spec: d.Spec.Template.Spec}
	pod.Spec.PriorityClassName = "" // This class is reserved for kube-system.

	c.Expect(c.Client().Create(c.t.Context(), pod.DeepCopy())).To(MatchError(MatchRegexp(
		`violates PodSecurity "restricted:latest": host namespaces \(hostNetwork=true\), hostPort \([^)]*\)$`)))

	pod.Spec.HostNetwork = false
	pod.Spec.Containers[0].Ports = nil
	c.Expect(c.Client().Create(c.t.Context(), pod)).To(Succeed())
}

func testUpgradeOfApplied(c cluster) { c.testUpgrade("apply") }
func testUpgradeOfCreated(c cluster) { c.testUpgrade("create") }

// testUpgrade installs CPI 1.6.1 and then applies the manifests of this project. The names that identify it are kept;
// its other objects are removed.
func (c cluster) testUpgrade(verb string) {
	old, err := os.ReadFile("testdata/cpi-1.6.1.yaml")
	c.Expect(err).NotTo(HaveOccurred())
	c.kubectl(old, verb)
	defer c.remove(old)
	before := c.deployment()

	c.kubectl(c.manifest(addons.ManifestName), "apply")

	after := c.deployment()
	c.Expect(after.UID).To(Equal(before.UID), "the Deployment should be updated in place")
	c.Expect(c.hasAllFields(c.manifest(addons.ManifestName))).To(BeTrue())
	pod := after.Spec.Template.Spec
	c.Expect(pod.Containers).To(HaveLen(1))
	c.Expect(pod.Containers[0].Command).To(Equal([]string{addons.Binary}), "the old arguments should be gone")
	c.Expect(pod.Containers[0].VolumeMounts).To(HaveLen(2))
	if verb == "apply" {
		c.Expect(pod.Volumes).To(HaveLen(2)) // After "create", old volumes without a mount may remain.
	}
	c.Expect(pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution).To(BeNil())
	c.Expect(pod.Tolerations).To(HaveLen(6))
	c.Eventually(c.isAllowed).WithArguments(authorizationv1.ResourceAttributes{
		Verb:     "list",
		Resource: "secrets",
	}).Should(BeFalse(), "the old rights should be gone")
	config := &corev1.ConfigMap{}
	c.Expect(c.Client().Get(c.t.Context(), client.ObjectKey{Namespace: addons.Namespace, Name: addons.ConfigMapName},
		config)).To(Succeed())
	c.Expect(config.Data[addons.ConfigKey]).To(ContainSubstring("enableVirtualServiceSharedIP"),
		"the immutable configuration should not change")

	c.kubectl(c.manifest(addons.ManifestName), "apply")
	c.Expect(c.deployment().ResourceVersion).To(Equal(after.ResourceVersion), "a second apply should be a no-op")
}
