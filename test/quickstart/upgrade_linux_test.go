// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

var realControlPlanes = flag.Int("real-control-planes", 3, "how many control planes of real nodes are upgraded")

// previousKubernetes is the other version that make node-image supports.
const previousKubernetes = "v1.35.4"

// upgradeGap is the limit for the longest time without a response of the API server while its nodes are replaced.
const upgradeGap = 5 * time.Second

// TestAnUpgradeOfRealNodes replaces all nodes with nodes of the next release, while the API server and a Service are in
// use.
func TestAnUpgradeOfRealNodes(t *testing.T) {
	needsRealNodes(t, previousKubernetes, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) {
		o.kubernetes = previousKubernetes
		o.controlPlanes = *realControlPlanes
	})
	s.run("control planes and workers are upgraded", (*realCluster).testUpgrade)
	s.deleteCluster()
}

func (s *realCluster) testUpgrade() {
	api := s.probe("API server", "/readyz")
	web := s.probe("LoadBalancer", s.q.website)
	for _, part := range []struct{ kind, name, path string }{
		{"kubeadmcontrolplane", clusterName + "-control-plane", "control plane"},
		{"machinedeployment", clusterName + "-md-0", "worker"},
	} {
		started := time.Now()
		s.nextTemplate(part.name)
		s.manage("", "patch", part.kind, part.name, "--type=merge", "--patch="+newVersion(part.kind, part.name+"-next"))
		controlPlanes := part.kind == "kubeadmcontrolplane"
		s.Eventually(func(g Gomega) {
			v, err := s.q.observe(s.t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			for _, m := range s.machines(controlPlanes) {
				g.Expect(m.Spec.Version).To(Equal(programs.KubernetesVersion), m.Name)
			}
			g.Expect(v.available(s.q.controlPlanes + s.q.workers)).To(BeTrue())
		}, rolloutWithin, pollTest).Should(Succeed())
		s.t.Logf("%s upgraded in %s", part.path, time.Since(started).Round(time.Second))
	}
	api.finish(s.t)
	web.finish(s.t)
	s.Expect(api.gap).To(BeNumerically("<=", upgradeGap))
	// Cluster API retries the deletion of a Node for 10 s after its VM is gone. If the virtual IP is unavailable for
	// longer, the cloud controller manager deletes the Node.
	s.Eventually(func() string {
		return s.kubectl("get", "nodes", "-o=jsonpath={.items[*].status.nodeInfo.kubeletVersion}")
	}, nodeWithin, pollTest).ShouldNot(ContainSubstring(previousKubernetes))
	s.Expect(s.kubectl("get", "daemonset", "kube-proxy", "--namespace=kube-system",
		"-o=jsonpath={.spec.template.spec.containers[0].image}")).To(HaveSuffix(":" + programs.KubernetesVersion))
}

// nextTemplate copies a machine template, and sets the vApp template of the next release.
func (s *realCluster) nextTemplate(name string) {
	old := &infrav1.VCDMachineTemplate{}
	next := &infrav1.VCDMachineTemplate{}
	s.Expect(s.q.client.Get(s.t.Context(), client.ObjectKey{Namespace: clusterNamespace, Name: name}, old)).To(Succeed())
	next.Namespace = clusterNamespace
	next.Name = name + "-next"
	next.Spec = *old.Spec.DeepCopy()
	next.Spec.Template.Spec.Template = nodeImage(programs.KubernetesVersion)
	s.Expect(s.q.client.Create(s.t.Context(), next)).To(Succeed())
}

// newVersion returns the patch that upgrades a control plane or workers to a machine template of the next release.
func newVersion(kind, template string) string {
	type object = map[string]any
	reference := object{"infrastructureRef": object{"name": template}}
	spec := object{"version": programs.KubernetesVersion, "machineTemplate": object{"spec": reference}}
	if kind == "machinedeployment" {
		reference["version"] = programs.KubernetesVersion
		spec = object{"template": object{"spec": reference}}
	}
	patch, err := json.Marshal(object{"spec": spec})
	if err != nil {
		panic(fmt.Sprint("a constant: ", err))
	}
	return string(patch)
}
