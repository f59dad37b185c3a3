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

// previousKubernetes is the other version of make node-image.
const previousKubernetes = "v1.35.4"

// TestAnUpgradeOfRealNodes replaces all nodes with nodes of the next release, while the API server and a Service are in
// use.
func TestAnUpgradeOfRealNodes(t *testing.T) {
	needsRealNodes(t, previousKubernetes, programs.KubernetesVersion)
	s := newScene(t, func(o *options) {
		o.kubernetes = previousKubernetes
		o.controlPlanes = *realControlPlanes
	})
	s.run("control planes and workers are upgraded", (*scene).upgrades)
	s.deleted()
}

func (s *scene) upgrades() {
	api := s.probe("API server", "/readyz")
	web := s.probe("LoadBalancer", s.q.website)
	for _, part := range []struct{ kind, name, path string }{
		{"kubeadmcontrolplane", clusterName + "-control-plane", "control plane"},
		{"machinedeployment", clusterName + "-md-0", "worker"},
	} {
		began := time.Now()
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
		s.t.Logf("%s upgraded in %s", part.path, time.Since(began).Round(time.Second))
	}
	api.end(s.t)
	web.end(s.t)
	// Cluster API tries for 10 s to delete the Node of a VM that is gone. The virtual IP may be unavailable for longer.
	// Then the cloud controller manager deletes the Node.
	s.Eventually(func() string {
		return s.kubectl("get", "nodes", "-o=jsonpath={.items[*].status.nodeInfo.kubeletVersion}")
	}, nodeWithin, pollTest).ShouldNot(ContainSubstring(previousKubernetes))
	s.Expect(s.kubectl("get", "daemonset", "kube-proxy", "--namespace=kube-system",
		"-o=jsonpath={.spec.template.spec.containers[0].image}")).To(HaveSuffix(":" + programs.KubernetesVersion))
}

// nextTemplate creates a machine template like another, for VMs with the next release.
func (s *scene) nextTemplate(name string) {
	old := &infrav1.VCDMachineTemplate{}
	next := &infrav1.VCDMachineTemplate{}
	s.Expect(s.q.client.Get(s.t.Context(), client.ObjectKey{Namespace: clusterNamespace, Name: name}, old)).To(Succeed())
	next.Namespace = clusterNamespace
	next.Name = name + "-next"
	next.Spec = *old.Spec.DeepCopy()
	next.Spec.Template.Spec.Template = nodeImage(programs.KubernetesVersion)
	s.Expect(s.q.client.Create(s.t.Context(), next)).To(Succeed())
}

// newVersion returns the patch of a control plane or of workers.
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
