// SPDX-License-Identifier: Apache-2.0

package kubevip_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
)

func services(t *testing.T, c kubevip.ServicesConfig) []unstructured.Unstructured {
	t.Helper()
	objects, err := kubevip.Services(c)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return objects
}

// The tests of hack/kubevip read these files with kube-vip's own parser.
func TestRenderedServicesMatchTheKubeVIPTestData(t *testing.T) {
	for name, config := range map[string]kubevip.ServicesConfig{
		"services.yaml": {},
		"services-class.yaml": {
			Class:        "example.com/kube-vip",
			Interface:    "ens192",
			Image:        "registry.example.com/kube-vip:v0.9.1",
			ControlPlane: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join("testdata", name)

			got, err := addons.Marshal(services(t, config))

			g.Expect(err).NotTo(HaveOccurred())
			if *update {
				g.Expect(os.WriteFile(path, got, 0o600)).To(Succeed())
			}
			g.Expect(os.ReadFile(path)).To(BeEquivalentTo(got), "go test ./internal/kubevip -run Rendered -update")
		})
	}
}

func TestServicesAreAnnouncedByWorkersUnlessAllNodesAreAllowed(t *testing.T) {
	g := NewWithT(t)
	pod := func(c kubevip.ServicesConfig) corev1.PodSpec {
		return typed[appsv1.DaemonSet](t, services(t, c), "DaemonSet").Spec.Template.Spec
	}

	workers := pod(kubevip.ServicesConfig{}).Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	g.Expect(workers.NodeSelectorTerms).To(HaveExactElements(HaveField("MatchExpressions", ConsistOf(
		corev1.NodeSelectorRequirement{Key: "node-role.kubernetes.io/control-plane", Operator: "DoesNotExist"},
		corev1.NodeSelectorRequirement{Key: "node.kubernetes.io/exclude-from-external-load-balancers", Operator: "DoesNotExist"},
	))))
	g.Expect(pod(kubevip.ServicesConfig{ControlPlane: true}).Affinity).To(BeNil())
}

func TestServicesShareNoObjectsWithTheEndpoint(t *testing.T) {
	g := NewWithT(t)
	ofEndpoint, err := kubevip.Objects(config(byDaemonSet))
	g.Expect(err).NotTo(HaveOccurred())
	names := map[string]bool{}
	for _, u := range ofEndpoint {
		names[u.GetKind()+"/"+u.GetName()] = true
	}

	all := services(t, kubevip.ServicesConfig{})

	for _, u := range all {
		g.Expect(names).NotTo(HaveKey(u.GetKind() + "/" + u.GetName()))
	}
	values := env(&corev1.Pod{Spec: typed[appsv1.DaemonSet](t, all, "DaemonSet").Spec.Template.Spec})
	theirs := env(&corev1.Pod{Spec: typed[appsv1.DaemonSet](t, ofEndpoint, "DaemonSet").Spec.Template.Spec})
	for _, name := range []string{"vip_leasename", "prometheus_server"} {
		g.Expect(values[name]).NotTo(Equal(theirs[name]), name)
	}
	g.Expect(values).NotTo(HaveKey("cp_enable"))
}

func TestServicesNeedFewPermissions(t *testing.T) {
	g := NewWithT(t)
	all := services(t, kubevip.ServicesConfig{})

	g.Expect(typed[rbacv1.Role](t, all, "Role").Rules).To(ConsistOf(
		HaveField("Verbs", []string{"create"}),
		And(HaveField("ResourceNames", []string{"plndr-svcs-lock"}), HaveField("Verbs", []string{"get", "update"})),
	))
	for _, u := range all {
		if u.GetKind() != "ClusterRole" {
			continue
		}
		role := &rbacv1.ClusterRole{}
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, role)).To(Succeed())
		g.Expect(role.Rules).To(HaveEach(HaveField("Resources", HaveEach(HavePrefix("services")))))
	}
}

func TestServicesRejectInvalidInput(t *testing.T) {
	for name, config := range map[string]kubevip.ServicesConfig{
		"an interface name": {Interface: "eth 0"},
		"name of an image":  {Image: "kube-vip v1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubevip.Services(config)

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(name)))
		})
	}
}
