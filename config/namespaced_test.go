// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// clusterScoped are the cluster-scoped resources that the manager uses. A RoleBinding cannot grant access to them.
var clusterScoped = []string{
	"namespaces", "customresourcedefinitions", "tokenreviews", "subjectaccessreviews", "vcdclusteridentities",
	"vcdclusteridentities/status", "vcdclusteridentities/finalizers",
}

// TestNamespacedRights compares the overlay for a single namespace with the role of the manager.
func TestNamespacedRights(t *testing.T) {
	g := NewWithT(t)
	objects, _ := renderFolder(t, "namespaced")
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range slices.Concat(ofKind(objects, "ClusterRole"), ofKind(objects, "Role")) {
		rules[object.GetKind()+"/"+object.GetName()] = read[rbacv1.ClusterRole](g, object).Rules
	}
	// Only Cluster API's CRD migrator patches them. The overlay disables it.
	skipped := func(right string) bool { return strings.HasPrefix(right, "patch customresourcedefinitions") }

	var everywhere []string
	for _, object := range ofKind(objects, "ClusterRoleBinding") {
		binding := read[rbacv1.ClusterRoleBinding](g, object)
		everywhere = append(everywhere, rightsIn(rules[binding.RoleRef.Kind+"/"+binding.RoleRef.Name])...)
	}
	g.Expect(everywhere).NotTo(ContainElement(HaveSuffix(" secrets")))
	for _, right := range rightsIn(rules["ClusterRole/capvcd-manager-role"]) {
		if slices.ContainsFunc(clusterScoped, func(r string) bool { return strings.HasSuffix(right, " "+r) }) &&
			!skipped(right) {
			g.Expect(everywhere).To(ContainElement(right))
		}
	}

	// Permissions for VCDClusterIdentities: the Secret is in the manager's namespace, but clusters in any namespace can
	// use the identity.
	g.Expect(everywhere).To(ContainElement("list vcdclusters"))
	g.Expect(rightsIn(rules["Role/capvcd-manager-secrets"])).To(ConsistOf("get secrets", "list secrets",
		"patch secrets", "update secrets", "list vcdidentities"))

	namespaces := map[string]string{}
	for _, object := range ofKind(objects, "RoleBinding") {
		binding := read[rbacv1.RoleBinding](g, object)
		g.Expect(rules).To(HaveKey(binding.RoleRef.Kind + "/" + binding.RoleRef.Name))
		namespaces[binding.RoleRef.Name] = binding.Namespace
	}
	g.Expect(namespaces).To(And(HaveKeyWithValue("capvcd-manager-role", "team-a"),
		HaveKeyWithValue("capvcd-manager-secrets", "capvcd-system")))
	args, _, err := unstructured.NestedSlice(ofKind(objects, "Deployment")[0].Object, "spec", "template", "spec",
		"containers")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(args[0]).To(HaveKeyWithValue("args", ContainElement("--namespace=team-a")))
}

// rightsIn lists the permissions in rules, with one verb and one resource each.
func rightsIn(rules []rbacv1.PolicyRule) []string {
	var rights []string
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights = append(rights, verb+" "+resource)
			}
		}
	}
	return rights
}

// read converts an object to its Go type.
func read[T any](g *WithT, object *unstructured.Unstructured) *T {
	out := new(T)
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out)).To(Succeed())
	return out
}
