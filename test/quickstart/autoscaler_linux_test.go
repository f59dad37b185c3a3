// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

var autoscaler = flag.String("autoscaler", "", "path of the cluster autoscaler, built with the tag clusterapi")

const (
	// pool is the name of a MachineDeployment without machines, and of the Deployment whose pods run only there.
	pool = "batch"
	// poolLabel is a label that Cluster API copies from Machines to their Nodes.
	poolLabel = clusterv1.NodeRoleLabelPrefix + "/" + pool
)

// batch requests more than half of a node.
const batch = `apiVersion: apps/v1
kind: Deployment
metadata: {name: batch}
spec:
  selector: {matchLabels: {app: batch}}
  template:
    metadata: {labels: {app: batch}}
    spec:
      nodeSelector: {"%s": ""}
      terminationGracePeriodSeconds: 0
      containers:
        - name: batch
          image: "%s"
          command: [sleep, infinity]
          resources: {requests: {cpu: "%s"}}
`

// TestAutoscalingOfRealNodes lets the cluster autoscaler add the first node of a MachineDeployment for a pod, and remove
// it after the pod. Without nodes, the autoscaler relies on the capacity in the status of the VCDMachineTemplate.
func TestAutoscalingOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	if *autoscaler == "" {
		t.Skip("it needs the cluster autoscaler: make e2e-real REAL_FLAGS=-autoscaler=PATH")
	}
	s := newRealCluster(t)
	s.createPool()
	p := s.startAutoscaler()
	s.run("no node is added for a pod that is too large", (*realCluster).testTooLargePod)
	s.run("a pod gets the first node of its pool", (*realCluster).testScaleFromZero)
	s.run("the last node of the pool is removed after its pod", (*realCluster).testScaleToZero)
	s.Expect(p.Kill()).To(Succeed())
	s.deleteCluster()
}

// createPool creates a MachineDeployment like that of the workers, but without machines.
func (s *realCluster) createPool() {
	workers := &clusterv1.MachineDeployment{}
	key := client.ObjectKey{Namespace: clusterNamespace, Name: clusterName + "-md-0"}
	s.Expect(s.q.client.Get(s.t.Context(), key, workers)).To(Succeed())
	md := &clusterv1.MachineDeployment{}
	md.Namespace = clusterNamespace
	md.Name = pool
	md.Annotations = map[string]string{
		clusterv1.AutoscalerMinSizeAnnotation:              "0",
		clusterv1.AutoscalerMaxSizeAnnotation:              "2",
		"capacity.cluster-autoscaler.kubernetes.io/labels": poolLabel + "=",
	}
	md.Spec = *workers.Spec.DeepCopy()
	md.Spec.Replicas = ptr.To[int32](0)
	md.Spec.Selector.MatchLabels[clusterv1.MachineDeploymentNameLabel] = pool
	md.Spec.Template.Labels[clusterv1.MachineDeploymentNameLabel] = pool
	md.Spec.Template.Labels[poolLabel] = ""
	s.Expect(s.q.client.Create(s.t.Context(), md)).To(Succeed())
}

// startAutoscaler starts the cluster autoscaler with intervals that are short enough for a test.
func (s *realCluster) startAutoscaler() *process.Process {
	p, err := process.Start(process.Spec{
		Name: "cluster-autoscaler",
		Path: *autoscaler,
		Args: []string{
			"--cloud-provider=clusterapi",
			"--kubeconfig=" + s.q.kubeconfig(),
			"--cloud-config=" + s.q.stack.Kubeconfig(),
			"--node-group-auto-discovery=clusterapi:namespace=" + clusterNamespace + ",clusterName=" + clusterName,
			"--leader-elect=false",
			"--write-status-configmap=false",
			"--address=127.0.0.1:0",
			"--scan-interval=5s",
			"--scale-down-unneeded-time=20s",
			"--scale-down-delay-after-add=20s",
			"--v=4",
		},
		Env: os.Environ(),
		Dir: s.q.dir,
	})
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Cleanup(func() { _ = p.Kill() })
	return p
}

// runPod creates a Deployment of one pod that runs only in the pool.
func (s *realCluster) runPod(cpu string) {
	s.manage(fmt.Sprintf(batch, poolLabel, busybox, cpu), "--kubeconfig="+s.q.kubeconfig(), "apply", "-f", "-")
}

func (s *realCluster) testTooLargePod() {
	s.runPod("64")
	events := func() string {
		return s.kubectl("get", "events", "--field-selector=reason=NotTriggerScaleUp", "-o=jsonpath={.items[*].message}")
	}
	s.Eventually(events, nodeWithin, pollTest).Should(ContainSubstring("Insufficient cpu"))
	s.Expect(s.vmIDs()).To(HaveLen(2))
}

func (s *realCluster) testScaleFromZero() {
	started := time.Now()
	s.runPod("1200m")
	s.kubectl("rollout", "status", "deployment/batch", "--timeout="+nodeWithin.String())
	s.t.Logf("the pod is ready after %s", time.Since(started).Round(time.Second))
	s.Expect(s.vmIDs()).To(HaveLen(3))
	node := s.kubectl("get", "pods", "--selector=app=batch", "-o=jsonpath={.items[*].spec.nodeName}")
	s.Expect(strings.HasPrefix(node, pool+"-")).To(BeTrue(), "the pod runs on %s", node)
}

func (s *realCluster) testScaleToZero() {
	s.kubectl("delete", "deployment", "batch")
	started := time.Now()
	s.Eventually(s.vmIDs, nodeWithin, pollTest).Should(HaveLen(2))
	s.t.Logf("the VM is gone after %s", time.Since(started).Round(time.Second))
	s.waitUntilReady(2, nodeWithin)
}
