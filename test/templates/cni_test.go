// SPDX-License-Identifier: Apache-2.0

package templates_test

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testcni"
)

// createNetworkPlugins creates the ClusterResourceSets of a release, with test manifests instead of the published ones.
func (s *environment) createNetworkPlugins() {
	s.t.Helper()
	sources, err := testcni.WriteSources(s.t.TempDir())
	s.Expect(err).NotTo(HaveOccurred())
	release := s.t.TempDir()
	script := exec.CommandContext(s.t.Context(), filepath.Join(s.w.Root, "hack", "cni-manifests.sh"), release)
	script.Env = append(os.Environ(), "CNI_SOURCES="+sources)
	out, err := script.CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), string(out))
	for _, name := range []string{"calico", "cilium", "cilium-dual-stack"} {
		file := filepath.Join(release, "cni-"+name+".yaml")
		out, err := s.w.Kubectl(s.t.Context(), nil, "apply", "--server-side", "--filename="+file, "--namespace="+namespace)
		s.Expect(err).NotTo(HaveOccurred(), string(out))
	}
}

// hasNetworkPlugin waits until the cluster has the selected network plug-in, and no other.
func (s *environment) hasNetworkPlugin(c flavoredCluster) {
	s.t.Helper()
	agents := map[string]map[string]string{} // annotations by name of the DaemonSet
	switch c.cni {
	case "calico":
		agents["calico-node"] = nil
	case "cilium":
		agents["cilium"] = map[string]string{"ipam": "kubernetes", "ipv6": "false"}
	case "cilium-dual-stack":
		agents["cilium"] = map[string]string{"ipam": "kubernetes", "ipv6": "true"}
	}
	agents["kube-proxy"] = nil
	workload := s.workloadClient(c)
	s.Eventually(func(g Gomega) {
		list := &appsv1.DaemonSetList{}
		g.Expect(workload.List(s.t.Context(), list)).To(Succeed())
		found := map[string]map[string]string{}
		for _, d := range list.Items {
			found[d.Name] = d.Annotations
		}
		g.Expect(found).To(Equal(agents))
	}, timeout, "250ms").Should(Succeed(), "flavor %s", c.flavor)
}

// workloadClient returns a client with the administrator's kubeconfig of a cluster.
func (s *environment) workloadClient(c flavoredCluster) client.Client {
	s.t.Helper()
	kubeconfig, err := s.site.Workloads.AdminKubeconfig(c.flavor)
	s.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	s.Expect(err).NotTo(HaveOccurred())
	workload, err := client.New(config, client.Options{Scheme: s.client.Scheme()})
	s.Expect(err).NotTo(HaveOccurred())
	return workload
}
