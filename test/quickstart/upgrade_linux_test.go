// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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

// TestAnUpgradeBehindAnEdgeGatewayOfRealNodes is the same with an endpoint on the edge gateway, whose pool the control
// planes join and leave.
func TestAnUpgradeBehindAnEdgeGatewayOfRealNodes(t *testing.T) {
	needsRealNodes(t, previousKubernetes, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) {
		o.kubernetes = previousKubernetes
		o.controlPlanes = *realControlPlanes
		o.change = changeEach(toEdgeGateway)
	})
	s.run("control planes and workers are upgraded", (*realCluster).testUpgrade)
	s.deleteCluster()
}

func (s *realCluster) testUpgrade() {
	api := s.probe("API server", "/readyz")
	web := s.probe("LoadBalancer", s.q.website)
	s.upgradeControlPlanes()
	s.upgradeWorkers()
	api.finish(s.t)
	web.finish(s.t)
	s.Expect(api.gap).To(BeNumerically("<=", upgradeGap))
	s.Expect(web.failed).To(BeZero(), "failed requests to the Service")
	// Cluster API retries the deletion of a Node for 10 s after its VM is gone. If the virtual IP is unavailable for
	// longer, the cloud controller manager deletes the Node.
	s.Eventually(func() string {
		return s.kubectl("get", "nodes", "-o=jsonpath={.items[*].status.nodeInfo.kubeletVersion}")
	}, nodeWithin, pollTest).ShouldNot(ContainSubstring(previousKubernetes))
	s.Expect(s.kubectl("get", "daemonset", "kube-proxy", "--namespace=kube-system",
		"-o=jsonpath={.spec.template.spec.containers[0].image}")).To(HaveSuffix(":" + programs.KubernetesVersion))
}

// upgradeControlPlanes replaces the control planes with machines of the next release.
func (s *realCluster) upgradeControlPlanes() {
	name := clusterName + "-control-plane"
	s.nextTemplate(name)
	s.upgrade(controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"), name, object{
		"version": programs.KubernetesVersion,
		"machineTemplate": object{
			"spec": object{"infrastructureRef": object{"name": name + "-next"}},
		},
	})
	s.waitUntilUpgraded(true)
}

// upgradeWorkers replaces the workers with machines of the next release.
func (s *realCluster) upgradeWorkers() {
	name := clusterName + "-md-0"
	s.nextTemplate(name)
	s.upgrade(clusterv1.GroupVersion.WithKind("MachineDeployment"), name, object{
		"template": object{"spec": object{
			"version":           programs.KubernetesVersion,
			"infrastructureRef": object{"name": name + "-next"},
		}},
	})
	s.waitUntilUpgraded(false)
}

type object = map[string]any

// upgrade patches the spec of the owner of machines.
func (s *realCluster) upgrade(kind schema.GroupVersionKind, name string, spec object) {
	patch, err := json.Marshal(object{"spec": spec})
	s.Expect(err).NotTo(HaveOccurred())
	owner := &unstructured.Unstructured{}
	owner.SetGroupVersionKind(kind)
	owner.SetNamespace(clusterNamespace)
	owner.SetName(name)
	s.Expect(s.q.client.Patch(s.t.Context(), owner, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// waitUntilUpgraded waits until the control planes or the workers have the version of the next release.
func (s *realCluster) waitUntilUpgraded(controlPlanes bool) {
	started := time.Now()
	s.Eventually(func(g Gomega) {
		v, err := s.q.observe(s.t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		for i := range v.machines {
			if _, controlPlane := v.machines[i].Labels[clusterv1.MachineControlPlaneLabel]; controlPlane == controlPlanes {
				g.Expect(v.machines[i].Spec.Version).To(Equal(programs.KubernetesVersion), v.machines[i].Name)
			}
		}
		g.Expect(v.available(s.q.controlPlanes + s.q.workers)).To(BeTrue())
	}, rolloutWithin, pollTest).Should(Succeed())
	role := "workers"
	if controlPlanes {
		role = "control planes"
	}
	s.t.Logf("%s upgraded in %s", role, time.Since(started).Round(time.Second))
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
