// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

// TestStack starts one stack for all subtests.
func TestStack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a management cluster; left out by -short")
	}
	ctx := t.Context()
	dir := t.TempDir()
	s := start(ctx, t, dir)

	t.Run("a second stack in the same folder fails", func(t *testing.T) {
		g := NewWithT(t)
		_, err := stack.Start(ctx, stack.Options{Dir: dir, Cache: os.Getenv("STACK_CACHE")})
		g.Expect(err).To(MatchError(And(ContainSubstring("another stack"), ContainSubstring(dir))))
	})
	t.Run("the core webhook rejects an invalid Cluster", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(s.Client().Create(ctx, cluster("wrong", "not-a-cidr"))).To(MatchError(And(
			ContainSubstring("validation.cluster.cluster.x-k8s.io"), ContainSubstring("not-a-cidr"))))
	})
	t.Run("a namespace is deleted with its content", func(t *testing.T) { testNamespaceDeletion(ctx, t, s) })
	t.Run("objects without an owner are garbage collected", func(t *testing.T) { testGarbageCollection(ctx, t, s) })
	t.Run("clusterctl works as on an initialized management cluster", func(t *testing.T) { testClusterctl(ctx, t, s) })
	t.Run("certificates are issued and their CA is injected", func(t *testing.T) {
		testCertificates(ctx, t, s)
	})
	t.Run("clusterctl finds the releases of the parts", func(t *testing.T) { testReleases(ctx, t, s) })
	t.Run("a killed manager restarts", func(t *testing.T) { testManagerRestart(ctx, t, s) })
	t.Run("no manager is denied a right", func(t *testing.T) {
		g := NewWithT(t)
		for _, name := range []string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "ipam-in-cluster"} {
			content, err := os.ReadFile(s.Manager(name).LogPath())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(content)).NotTo(ContainSubstring("is forbidden"), name)
		}
		g.Expect(s.Failed()).NotTo(Receive())
	})

	began := time.Now()
	NewWithT(t).Expect(s.Stop()).To(Succeed())
	t.Logf("stopped in %s", time.Since(began))
	NewWithT(t).Expect(processesIn(t, dir)).To(BeEmpty(), "processes outlive the stack")
}

// start starts a stack, and logs how long that takes.
func start(ctx context.Context, t *testing.T, dir string) *stack.Stack {
	t.Helper()
	g := NewWithT(t)
	began := time.Now()
	s, err := stack.Start(ctx, stack.Options{Dir: dir, Cache: os.Getenv("STACK_CACHE"), Out: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(s.Stop()).To(Succeed()) })
	t.Logf("started in %s, builds included", time.Since(began))
	return s
}

func testNamespaceDeletion(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "content", Namespace: "passing"}}
	g.Expect(s.Client().Create(ctx, namespace)).To(Succeed())
	g.Expect(s.Client().Create(ctx, config)).To(Succeed())
	g.Expect(s.Client().Delete(ctx, namespace)).To(Succeed())
	began := time.Now()
	g.Eventually(gone(ctx, s, namespace)).Should(BeTrue())
	g.Expect(gone(ctx, s, config)()).To(BeTrue())
	t.Logf("deleted after %s", time.Since(began))
}

func testGarbageCollection(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: "default"}}
	g.Expect(s.Client().Create(ctx, owner)).To(Succeed())
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:      "owned",
		Namespace: "default",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1",
			Kind:       "ConfigMap",
			Name:       owner.Name,
			UID:        owner.UID,
		}},
	}}
	g.Expect(s.Client().Create(ctx, owned)).To(Succeed())
	g.Expect(s.Client().Delete(ctx, owner)).To(Succeed())
	began := time.Now()
	g.Eventually(gone(ctx, s, owned)).Should(BeTrue())
	t.Logf("garbage collected after %s", time.Since(began))
}

func testClusterctl(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(s.InstallInventory(ctx)).To(Succeed())
	g.Expect(s.LocalRepository(stack.Repository{
		Version: "v2.0.0",
		Files: map[string][]byte{
			"infrastructure-components.yaml": []byte(components),
			"metadata.yaml":                  []byte(metadata),
			"cluster-template-tiny.yaml":     []byte(template),
		},
		Variables: map[string]string{"TINY_VALUE": "from clusterctl.yaml"},
	})).To(Succeed())
	out, err := s.Clusterctl(ctx, "generate", "cluster", "tiny", "--infrastructure=vcd:v2.0.0", "--flavor=tiny",
		"--target-namespace=default")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(And(ContainSubstring("name: tiny"), ContainSubstring("value: from clusterctl.yaml")))

	g.Expect(s.Client().Create(ctx, cluster("described", "10.1.0.0/16"))).To(Succeed())
	out, err = s.Clusterctl(ctx, "describe", "cluster", "described")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(MatchRegexp("Cluster (default/)?described"))

	out, err = s.Kubectl(ctx, nil, "get", "providers", "-A", "-o", "name")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(ContainSubstring("ipam-in-cluster"))
}

func testManagerRestart(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	core := s.Manager("cluster-api")
	g.Expect(core.Kill()).To(Succeed())
	g.Expect(core.Healthy(ctx)).NotTo(Succeed())
	g.Expect(s.Client().Create(ctx,
		cluster("rejected", "10.1.0.0/16"))).To(MatchError(ContainSubstring("failed calling webhook")))
	began := time.Now()
	g.Expect(core.Start(ctx)).To(Succeed())
	t.Logf("ready again after %s", time.Since(began))
	g.Expect(s.Client().Create(ctx, cluster("accepted", "10.1.0.0/16"))).To(Succeed())
}

func gone(ctx context.Context, s *stack.Stack, object client.Object) func() bool {
	return func() bool {
		return apierrors.IsNotFound(s.Client().Get(ctx, client.ObjectKeyFromObject(object), object))
	}
}

func cluster(name, pods string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2",
		"kind":       "Cluster",
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{
			"clusterNetwork": map[string]any{"pods": map[string]any{"cidrBlocks": []any{pods}}},
			"infrastructureRef": map[string]any{
				"apiGroup": "infrastructure.cluster.x-k8s.io",
				"kind":     "VCDCluster",
				"name":     name,
			},
		},
	}}
}

// processesIn lists the processes whose command line contains a folder.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(content, []byte{0}, []byte(" "))))
		}
	}
	return found
}

const (
	metadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 2, minor: 0, contract: v1beta2}
`
	components = `apiVersion: v1
kind: Namespace
metadata: {name: capvcd-system}
`
	template = `apiVersion: v1
kind: ConfigMap
metadata:
  name: ${CLUSTER_NAME}
  namespace: ${NAMESPACE}
data:
  value: ${TINY_VALUE}
`
)
